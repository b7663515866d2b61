"""Relative attention and memory: the four-term score by loops, one long pass, and transformers' XLNet."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import XLNetConfig
from transformers import XLNetModel as Peer

from tests.small import masking, random_batch, vocabulary
from unmask.backbone import LayerMemory, TransformerXL
from unmask.backbone.biased_attention import look, slid
from unmask.backbone.relative import RelativeAttention, relate, waves
from unmask.batch import Batch, Targets
from unmask.errors import UserError
from unmask.hide import Harmonic, Spans
from unmask.see import LeftToRight, Permuted


def stream(ids: torch.Tensor) -> Batch:
    """Rows of one example each, read from left to right."""
    places = torch.arange(ids.shape[1]).expand(ids.shape)
    zeros, one = torch.zeros_like(ids), torch.zeros(len(ids), dtype=torch.long)
    batch = Batch(
        ids=ids, columns={"word": places, "sentence": zeros}, example=zeros, segment=zeros, position=places, row=one, visit=one,
        summary=one, label=one, counted=torch.ones(len(ids)),
    )  # fmt: skip
    return LeftToRight().apply(batch)


def network(pattern="left", **changes):
    spec = TransformerXL(layers=2, width=16, heads=2, head=8, feedforward=32, memory=6, **changes)
    torch.manual_seed(0)
    module = spec.build(40, pattern)
    for name, parameter in module.named_parameters():
        if "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return module.eval()


def permuted(rows: int = 3, length: int = 24, seed: int = 0, *, reuse: int | None = None, block: int | None = None):
    """A batch of permutation language modelling, as XLNet trains on it."""
    batch = random_batch(rows, length, examples=1, seed=seed, size=40, padding=0).replace(reuse=reuse)
    view = Permuted(block=block)
    batch = view.draw(batch, 7)
    hide = masking(units=Spans(lengths=Harmonic(most=5)), budget=1 / 6, mask=0.0, random=0.0)
    return view.apply(hide.apply(batch, vocabulary(40), 7))


@pytest.mark.parametrize("nearest", [0, -4], ids=["no distance ahead", "all distances"])
def test_the_score_is_the_four_terms_of_the_paper(nearest):
    torch.manual_seed(1)
    rows, memory, width, heads, head = 4, 3, 8, 2, 4
    attention = RelativeAttention(width, heads, head, segments=False).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    x, old = torch.randn(1, rows, width).double(), torch.randn(1, memory, width).double()
    batch = stream(torch.arange(rows)[None])
    table = waves(rows + memory - 1, nearest, width, None, x.device).double()[None]
    state = LayerMemory(old[:, None], torch.ones(1, memory, dtype=torch.bool))
    found, _ = attention(x, None, old, relate(batch, state, table, segments=False, query=False))
    read = torch.cat((old, x), 1)[0]
    query, kv = attention.query(x)[0], attention.key_value(read)
    key, value = kv[:, : heads * head], kv[:, heads * head :]
    gathered = torch.zeros(rows, heads * head).double()
    for h in range(heads):
        part = slice(h * head, (h + 1) * head)
        u, v = attention.content_bias[h], attention.place_bias[h]
        for i in range(rows):
            scores = []
            for j in range(memory + i + 1):
                distance = memory + i - j
                angles = [distance / 10_000 ** (2 * n / width) for n in range(width // 2)]
                wave = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)]).double()
                place = (attention.place.weight @ wave)[part]
                q, k = query[i, part], key[j, part]
                scores.append((q @ k + q @ place + u @ k + v @ place) / math.sqrt(head))
            chances = torch.stack(scores).softmax(0)
            gathered[i, part] = sum(c * value[j, part] for j, c in enumerate(chances))
    assert torch.allclose(found[0], attention.out(gathered), atol=1e-6)


@pytest.mark.parametrize("shared", [True, False], ids=["one table of places", "a table for each row"])
@pytest.mark.parametrize("some", [False, True], ids=["every place", "some places"])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("ahead", [False, True], ids=["no distance ahead", "all distances"])
def test_what_is_gathered_is_the_sum_of_values_weighted_by_content_distance_and_segment(shared, some, segments, ahead):
    random = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    rows, heads, length, keys, head = 3, 2, 4, 6, 5
    at = torch.tensor([[3, 0], [1, 1], [2, 3]]) if some else torch.arange(length).expand(rows, -1)
    queries = at.shape[1]
    query, placed, key_value = (numbers(rows, n * heads, m, head) for n, m in ((1, queries), (1, queries), (2, keys)))
    place = numbers(1 if shared else rows, heads, keys + (length if ahead else 0), head)
    both = numbers(rows, heads, queries, 2) if segments else None
    seen = torch.randint(0, 3 if segments else 2, (rows, queries, keys), generator=random, dtype=torch.uint8)
    seen[1, 1] = 0
    found = look(query, key_value, placed, place, both, seen, length - 1 - at if some else None)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (rows, heads, queries))).tolist():
        scores, values = [], []
        for j in range(keys):
            distance, score = int(at[b, i]) + keys - length - j, query[b, h, i] @ key_value[b, h, j]
            if ahead or distance >= 0:
                score = score + placed[b, h, i] @ place[0 if shared else b, h, keys - 1 - distance]
            if both is not None:
                score = score + both[b, h, i, max(0, int(seen[b, i, j]) - 1)]
            if seen[b, i, j]:
                scores.append(score / math.sqrt(head))
                values.append(key_value[b, heads + h, j])
        expected = torch.stack(scores).softmax(0) @ torch.stack(values) if scores else torch.zeros(head).double()
        assert torch.allclose(found[b, h, i], expected, atol=1e-10)


def test_relations_say_who_is_seen_of_which_segment_and_where_the_seen_begin_and_end():
    batch = permuted(rows=3, length=12, seed=1).replace(segment=torch.arange(12).expand(3, -1) // 5)
    state = LayerMemory(torch.zeros(3, 2, 4, 16), torch.tensor([[False] * 4, [True] * 4, [False, False, True, True]]))
    relations = relate(batch, state, torch.zeros(1, 28, 16), segments=True, query=True)
    where = batch.targets["tokens"].where.view(3, -1) % 12
    assert torch.equal(relations.query.column, 11 - where)
    for strict, asking, at in (
        (False, relations.content, torch.arange(12).expand(3, -1)),
        (True, relations.query, where),
    ):
        for b in range(3):
            for i, place in enumerate(at[b].tolist()):
                expected = [int(real) * (2 - int(batch.segment[b, place] == 0)) for real in state.real[b].tolist()]
                for j in range(12):
                    ahead = int(batch.rank[b, j]) - int(batch.rank[b, place])
                    kind = 1 if batch.segment[b, j] == batch.segment[b, place] else 2
                    expected.append(kind if ahead < 0 or (ahead == 0 and not strict) else 0)
                assert asking.seen[b, i].tolist() == expected
                assert int(asking.end[b, i]) == max((j + 1 for j, kind in enumerate(expected) if kind), default=0)
            for j in range(16):
                first = next((i for i in range(at.shape[1]) if asking.seen[b, i, j]), at.shape[1])
                assert int(asking.begin[b, j]) == first


@pytest.mark.parametrize("rows, keys", [(1, 1), (1, 5), (4, 4), (4, 9)])
def test_scores_are_slid_so_that_each_query_takes_its_own_distances(rows, keys):
    memory = keys - rows
    distances = torch.arange(keys - 1, -rows - 1, -1).float().expand(1, 1, rows, -1)
    found = slid(distances, keys, None)
    for i in range(rows):
        for j in range(keys):
            assert found[0, 0, i, j] == i + memory - j
    some = torch.tensor([[rows - 1, 0]])
    assert torch.equal(slid(distances[:, :, [rows - 1, 0]], keys, rows - 1 - some), found[:, :, [rows - 1, 0]])
    shorter = slid(distances[..., :keys], keys, None)
    assert torch.equal(shorter, found.clamp(min=0)), "without a distance, 0"
    assert torch.equal(slid(distances[:, :, [rows - 1, 0], :keys], keys, rows - 1 - some), shorter[:, :, [rows - 1, 0]])


def test_with_a_memory_as_long_as_the_text_rows_give_what_one_long_pass_gives():
    module = network()
    ids = torch.randint(0, 40, (2, 21), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, _ = module(stream(ids), module.cache(2, 0))
        state, parts = module.cache(2, 21), []
        for begin, end in ((0, 5), (5, 6), (6, 14), (14, 21)):
            hidden, state = module(stream(ids[:, begin:end]), state)
            parts.append(hidden.last)
    assert torch.allclose(torch.cat(parts, 1), whole.last, atol=1e-5)


def test_an_empty_memory_is_as_good_as_none():
    module, batch = network(), stream(torch.arange(14).view(2, 7))
    with torch.no_grad():
        assert torch.allclose(module(batch)[0].last, module(batch, module.cache(2, 9))[0].last, atol=1e-6)


def test_memory_carries_no_gradient_and_no_more_tokens_than_it_may():
    module, batch = network(), stream(torch.arange(20).view(2, 10))
    _, state = module(batch, module.cache(2))
    assert state.layers.shape == (2, 2, 6, 16)
    assert not state.layers.requires_grad
    assert bool(state.real.all())
    short = stream(torch.arange(8).view(2, 4))
    _, state = module(short, module.cache(2))
    assert state.real.tolist() == [[False, False, True, True, True, True]] * 2
    _, after = module(short.replace(reuse=3), state)
    assert torch.equal(after.layers[:, :, :3], state.layers[:, :, 3:])
    assert module(batch)[1] is None, "without a state, none is kept"


def test_a_row_that_begins_again_sees_nothing_of_what_was_remembered():
    module, batch = network(), stream(torch.arange(12).view(2, 6))
    with torch.no_grad():
        _, state = module(batch, module.cache(2))
        begun = batch.replace(per_row={"begins": torch.tensor([True, False])})
        (again, after), (fresh, _) = module(begun, state), module(batch, module.cache(2))
        plain, _ = module(batch, state)
    assert torch.allclose(again.last[0], fresh.last[0], atol=1e-6)
    assert torch.equal(again.last[1], plain.last[1])
    assert not torch.allclose(plain.last[0], fresh.last[0], atol=1e-3)
    assert bool(after.real.all())


@pytest.mark.parametrize("pattern", ["ranked", "left"])
def test_operations_are_those_of_its_products(pattern):
    """Counted by torch on one pass, less the projection of the distances, which all rows of a batch share."""
    from torch.utils.flop_counter import FlopCounterMode

    two = pattern == "ranked"
    module = network(pattern, streams=1 + two)
    batch = permuted(rows=1, length=24) if two else stream(torch.arange(24)[None])
    spec, share = module.spec, len(batch.targets["tokens"].where) / 24 if two else 0.0
    with FlopCounterMode(display=False) as counter:
        module(batch, module.cache(1))
    places = spec.layers * 2 * spec.width * spec.heads * spec.head * (24 + spec.memory + (24 if two else 0))
    assert spec.flops(24, pattern, share) * 24 == pytest.approx(counter.get_total_flops() - places)


def test_a_token_of_the_past_is_seen_through_memory_and_a_token_of_the_future_never():
    module = network()
    ids = torch.randint(0, 40, (1, 12), generator=torch.Generator().manual_seed(0))

    def second(ids: torch.Tensor) -> torch.Tensor:
        _, state = module(stream(ids[:, :6]), module.cache(1))
        return module(stream(ids[:, 6:]), state)[0].last[0]

    with torch.no_grad():
        plain = second(ids)
        for changed in range(12):
            other = ids.clone()
            other[0, changed] = (other[0, changed] + 1) % 40
            moved = (second(other) - plain).abs().sum(-1) > 1e-7
            assert moved.tolist() == [place >= changed - 6 for place in range(6)], changed


def test_a_row_that_stands_backward_gives_what_the_row_gives_forward():
    module, batch = network("ranked"), permuted(rows=2, length=12)
    batch = batch.replace(targets={})
    backward, forward = ({"backward": torch.full((2,), value)} for value in (True, False))
    turned = batch.replace(ids=batch.ids.flip(1), rank=batch.rank.flip(1), per_row=backward)
    with torch.no_grad():
        expected = module(batch.replace(per_row=forward))[0].last
        assert torch.allclose(module(turned)[0].last.flip(1), expected, atol=1e-5)
        plain = module(batch)[0].last
    assert torch.allclose(plain, expected, atol=1e-6)


def test_the_query_stream_sees_neither_its_target_nor_what_comes_after_it():
    module, batch = network("ranked", streams=2, segments=3), permuted(rows=1, length=24)
    rank = batch.rank[0].tolist()
    where, used = batch.targets["tokens"].where.tolist(), batch.targets["tokens"].weight.tolist()
    with torch.no_grad():
        plain, _ = module(batch)
        for changed in range(24):
            ids = batch.ids.clone()
            ids[0, changed] = (ids[0, changed] + 1) % 40
            other, _ = module(batch.replace(ids=ids))
            moved = (other.query - plain.query).abs().sum(-1) > 1e-7
            content = (other.last - plain.last)[0].abs().sum(-1) > 1e-7
            for place, real, answer in zip(where, used, moved.tolist(), strict=True):
                assert not real or answer == (rank[changed] < rank[place])
            assert content.tolist() == [rank[changed] <= r for r in rank]


def test_the_first_of_an_order_gathers_nothing_rather_than_everything():
    module = network("ranked", streams=2)
    batch = permuted(rows=1, length=8)
    batch = batch.replace(rank=torch.arange(8)[None])
    first = torch.tensor([0])
    one = Targets(where=first, at=first, ids=batch.ids[0, :1], start=first, end=first, weight=torch.ones(1))
    batch = batch.replace(targets={"tokens": one})
    with torch.no_grad():
        plain = module(batch)[0].query
        other = module(batch.replace(ids=(batch.ids + 1) % 40))[0].query
    assert torch.equal(plain, other)


@pytest.mark.parametrize("reuse, block", [(None, None), (12, 12), (12, 6)])
def test_both_streams_equal_those_of_transformers(reuse, block):
    module = network("ranked", streams=2, segments=3, scaled_embeddings=False, activation="gelu", epsilon=1e-12)
    peer = peer_of(module)
    batch = permuted(rows=3, length=24, reuse=reuse, block=block)
    blocked, chosen = masks_of(batch)
    memory = 0.3 * torch.randn(3, 2, 6, 16, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for state, mems in (
            (None, None),
            (LayerMemory(memory, torch.ones(3, 6, dtype=torch.bool)), list(memory.permute(1, 2, 0, 3))),
        ):
            expected = peer(
                batch.ids, perm_mask=blocked, target_mapping=chosen, token_type_ids=batch.segment, mems=mems,
                output_hidden_states=True, use_mems=False,
            )  # fmt: skip
            found, _ = module(batch, state)
            real = batch.targets["tokens"].weight > 0
            assert torch.allclose(found.query[real], expected.last_hidden_state.flatten(0, 1)[real], atol=1e-4)
            assert torch.allclose(found.last, expected.hidden_states[-2], atol=1e-4)


def test_rows_in_both_directions_equal_those_of_transformers():
    module = network("ranked", streams=2, segments=3, scaled_embeddings=False, activation="gelu", epsilon=1e-12)
    peer = peer_of(module, bi_data=True)
    batch = permuted(rows=4, length=15).replace(per_row={"backward": torch.tensor([False, False, True, True])})
    blocked, chosen = masks_of(batch)
    with torch.no_grad():
        expected = peer(batch.ids, perm_mask=blocked, target_mapping=chosen, token_type_ids=batch.segment)
        found, _ = module(batch)
    real = batch.targets["tokens"].weight > 0
    assert torch.allclose(found.query[real], expected.last_hidden_state.flatten(0, 1)[real], atol=1e-4)


def test_orders_are_those_of_the_original_masks():
    """Which places a target and a given token may see, by the rules of XLNet's data code, for each pair."""
    batch = permuted(rows=4, length=20, reuse=10, block=5)
    targets = set(batch.targets["tokens"].where[batch.targets["tokens"].weight > 0].tolist())
    for row in range(4):
        order, text = batch.order[row].tolist(), batch.columns["word"][row].tolist()
        for i in range(20):
            for j in range(20):
                free = text[j] >= 0 and row * 20 + j not in targets  # given: neither a target nor special
                mine = -1 if text[i] >= 0 and row * 20 + i not in targets else order[i]
                seen = (j < 10) if i >= 10 and j < 10 else (False if i < 10 <= j else free or order[j] <= mine)
                assert bool(batch.rank[row, j] <= batch.rank[row, i]) == seen


def test_a_memory_beyond_the_clamp_is_refused():
    with pytest.raises(UserError, match="is longer than the largest distance"):
        TransformerXL(memory=512, clamp=400)
    module = TransformerXL(layers=1, width=16, heads=2, head=8, feedforward=32, memory=6, clamp=8).build(40, "left")
    with pytest.raises(UserError, match="raise backbone.clamp"):
        module.cache(1, 9)


def masks_of(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """perm_mask (1: may not see) of the query stream and target_mapping, as transformers takes them."""
    rows, length = batch.shape
    blocked = (batch.rank[:, None, :] >= batch.rank[:, :, None]).float()
    predicted = torch.zeros(rows, length, dtype=torch.bool)
    predicted.view(-1)[batch.targets["tokens"].where[batch.targets["tokens"].weight > 0]] = True
    own = torch.eye(length, dtype=torch.bool) & ~predicted[:, :, None]
    ties = (batch.rank[:, None, :] == batch.rank[:, :, None]) & ~predicted[:, :, None]
    blocked = blocked.masked_fill(ties | own, 0.0)
    where = batch.targets["tokens"].where.view(rows, -1) % length
    return blocked, torch.nn.functional.one_hot(where, length).float()


def peer_of(module, **changes) -> Peer:
    """transformers' XLNet with the same weights."""
    spec = module.spec
    config = XLNetConfig(
        vocab_size=40, d_model=spec.width, n_layer=spec.layers, n_head=spec.heads, d_inner=spec.feedforward,
        ff_activation="gelu", attn_type="bi", layer_norm_eps=spec.epsilon, **changes,
    )  # fmt: skip
    peer = Peer(config).eval()
    shape = (spec.width, spec.heads, spec.head)
    with torch.no_grad():
        peer.word_embedding.weight.copy_(module.embed.token.weight)
        peer.mask_emb.copy_(module.mask.view(1, 1, -1))
        for layer, block in zip(peer.layer, module.blocks, strict=True):
            mine, theirs = block.attention, layer.rel_attn
            key, value = mine.key_value.weight.chunk(2)
            for name, weight in (("q", mine.query.weight), ("k", key), ("v", value), ("r", mine.place.weight)):
                getattr(theirs, name).copy_(weight.T.reshape(shape))
            theirs.o.copy_(mine.out.weight.reshape(shape))
            theirs.r_w_bias.copy_(mine.content_bias)
            theirs.r_r_bias.copy_(mine.place_bias)
            theirs.r_s_bias.copy_(mine.segment_bias)
            theirs.seg_embed.copy_(mine.segment)
            theirs.layer_norm.load_state_dict(block.attention_norm.state_dict())
            layer.ff.layer_norm.load_state_dict(block.mlp_norm.state_dict())
            layer.ff.layer_1.load_state_dict(block.mlp.up.state_dict())
            layer.ff.layer_2.load_state_dict(block.mlp.down.state_dict())
    return peer
