"""Disentangled attention against transformers' DebertaModel, and against the formula by explicit loops."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import DebertaConfig, DebertaModel

from tests.small import random_batch
from unmask.backbone import NoPositions, Transformer
from unmask.backbone.disentangled import Disentangled
from unmask.convert.deberta import FAMILY
from unmask.convert.names import Heads
from unmask.convert.tensor_links import links
from unmask.errors import UserError
from unmask.see import Everything, LeftToRight, visible

WIDTH, HEADS, LENGTH = 16, 2, 30
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def spec(reach: int = 64, **changes) -> Transformer:
    usual = {
        "layers": 3,
        "width": WIDTH,
        "heads": HEADS,
        "feedforward": 24,
        "length": 40,
        "dropout": 0.0,
        "epsilon": 1e-7,
    }
    return Transformer(**usual | {"attention": Disentangled(reach=reach), "positions": NoPositions()} | changes)


def network(reach: int = 64, **changes):
    """A network whose weights are all different, the biases and norms too."""
    made = spec(reach, **changes).build(200, "everything").eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.3)
    return made


def in_transformers(ours, reach: int) -> DebertaModel:
    """transformers' network with the same weights."""
    config = DebertaConfig(
        vocab_size=200, hidden_size=WIDTH, num_hidden_layers=3, num_attention_heads=HEADS, intermediate_size=24,
        relative_attention=True, max_relative_positions=reach, pos_att_type=["c2p", "p2c"], position_biased_input=False,
    )  # fmt: skip
    theirs = DebertaModel(config).eval()
    mine = {f"backbone.{name}": tensor for name, tensor in ours.state_dict().items()}
    named = {}
    for link in links(FAMILY, Heads(), mine, ours.spec):
        named |= link.write(mine[link.ours])
    theirs.load_state_dict({name.removeprefix("deberta."): tensor for name, tensor in named.items()}, strict=True)
    return theirs


@pytest.mark.parametrize("padding", [0, 7])
@pytest.mark.parametrize("reach", [5, 29, 30, 31, 64], ids=lambda reach: f"reach {reach}, rows of {LENGTH}")
def test_every_layer_is_that_of_transformers(reach, padding):
    ours = network(reach)
    theirs = in_transformers(ours, reach)
    batch = Everything().apply(random_batch(3, LENGTH, padding=padding))
    with torch.no_grad():
        found, _ = ours(batch)
        expected = theirs(batch.ids, attention_mask=batch.real.long(), output_hidden_states=True).hidden_states
    for mine, other in zip(found.layers, expected, strict=True):
        torch.testing.assert_close(mine[batch.real], other[batch.real], **CLOSE)


@pytest.mark.parametrize("reach", [4, 64])
def test_an_example_in_a_packed_row_gets_what_transformers_gives_it_alone(reach):
    ours = network(reach)
    theirs = in_transformers(ours, reach)
    batch = Everything().apply(random_batch(2, LENGTH, examples=3))
    with torch.no_grad():
        found, _ = ours(batch)
        for row in range(2):
            for number in range(3):
                here = batch.example[row] == number
                expected = theirs(batch.ids[row][here][None], output_hidden_states=True).hidden_states
                for mine, other in zip(found.layers, expected, strict=True):
                    torch.testing.assert_close(mine[row][here], other[0], **CLOSE)


def by_loops(attention, x, reads, table, sees):
    """T D, the attention of one row (T D) by the formula, pair by pair; `sees` T T."""
    length, size, reach = len(x), WIDTH // HEADS, len(table) // 2
    qkv = attention.qkv.weight.view(HEADS, 3, size, WIDTH)
    gathered = torch.zeros(length, WIDTH)
    for head in range(HEADS):
        here = slice(head * size, (head + 1) * size)
        q = x @ qkv[head, 0].T + attention.query_bias[here]
        k, v = reads @ qkv[head, 1].T, reads @ qkv[head, 2].T + attention.value_bias[here]
        key, query = attention.place_key(table)[:, here], attention.place_query(table)[:, here]
        for i in range(length):
            scores = torch.full((length,), -math.inf)
            for j in range(length):
                row = min(max(i - j, -reach), reach - 1) + reach
                if sees[i, j]:
                    scores[j] = (q[i] @ k[j] + q[i] @ key[row] + k[j] @ query[row]) / math.sqrt(3 * size)
            gathered[i, here] = scores.softmax(0) @ v
    return attention.out(gathered)


@pytest.mark.parametrize("view", [Everything(), LeftToRight()], ids=["everything", "left to right"])
@pytest.mark.parametrize("reach", [3, 50])
@torch.no_grad()
def test_the_scores_follow_the_formula_pair_by_pair(reach, view):
    ours = network(reach)
    batch = view.apply(random_batch(2, 13, examples=2, padding=2))
    block, x = ours.blocks[1], torch.randn(2, 13, WIDTH, generator=torch.Generator().manual_seed(1))
    _, mask, _ = ours._mask(batch, None, torch.float32)
    found, sees = block.attention(x, mask), visible(batch)
    for row in range(2):
        expected = by_loops(block.attention, x[row], x[row], ours.shared_attention.table.weight, sees[row])
        torch.testing.assert_close(found[row], expected, **CLOSE)


@torch.no_grad()
def test_keys_and_values_may_come_from_other_vectors_than_queries():
    ours = network(4)
    batch = Everything().apply(random_batch(1, 9, padding=0))
    x, reads = torch.randn(2, 1, 9, WIDTH, generator=torch.Generator().manual_seed(1))
    _, mask, _ = ours._mask(batch, None, torch.float32)
    attention = ours.blocks[0].attention
    expected = by_loops(attention, x[0], reads[0], ours.shared_attention.table.weight, visible(batch)[0])
    torch.testing.assert_close(attention(x, mask, reads=reads)[0], expected, **CLOSE)
    assert not torch.allclose(attention(x, mask)[0], expected, atol=1e-2)


def test_only_distances_count_and_never_places():
    """The same text later in a row gets the same vectors."""
    ours = network(6)
    batch = random_batch(1, 12, padding=0)
    later = batch.replace(position=batch.position + 5)
    with torch.no_grad():
        one, other = (ours(Everything().apply(each))[0].last for each in (batch, later))
    assert torch.equal(one, other)


def test_all_layers_share_one_table_and_its_used_rows_get_gradients():
    ours = network(9)
    tables = [name for name, tensor in ours.named_parameters() if tensor.shape == (18, WIDTH)]
    assert tables == ["shared_attention.table.weight"]
    ours(Everything().apply(random_batch(1, 6, padding=0)))[0].last.square().sum().backward()
    used = ours.shared_attention.table.weight.grad.abs().sum(1) > 0
    assert used.nonzero()[:, 0].tolist() == list(range(4, 15))  # distances -5 to 5, from row 9 - 5


def test_a_cache_is_refused_by_name():
    made = spec().build(200, "left")
    with pytest.raises(
        UserError, match=r"system.backbone.attention=Disentangled cannot .* cached=False \(--no-cache\)"
    ):
        made.cache(1, 8)


def test_a_reach_below_one_is_refused():
    with pytest.raises(UserError, match="backbone.attention.reach must be 1 or more, got 0"):
        Disentangled(reach=0)
