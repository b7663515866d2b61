"""The encoder-decoder: transformers' Bart with the same weights, and decoding token by token with a cache."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.small import random_batch, vocabulary
from unmask.backbone import EncoderDecoder, Learned, Rotary, Sinusoidal
from unmask.backbone.cross_attention import CrossAttention, CrossMask, cross_lengths, cross_mask
from unmask.errors import UserError
from unmask.hide import Delete, Masked, Rewrite, Window, apply_rules
from unmask.infer.batches import one_more
from unmask.see import Everything
from unmask.tree import rows_of

SHAPE = EncoderDecoder(
    layers=2, decoder_layers=3, width=16, heads=2, feedforward=32, length=40, dropout=0.0, deviation=0.3
)


def network(spec: EncoderDecoder):
    torch.manual_seed(0)
    return spec.build(200, "everything").eval()


def rows(examples: int = 1):
    batch = random_batch(rows=3, length=40, examples=examples, padding=6)
    return Everything().apply(Rewrite().apply(batch, vocabulary(), 0))


@pytest.mark.parametrize("norm, positions", [("post", Learned()), ("pre", Sinusoidal())])
def test_tokens_one_by_one_with_a_cache_get_the_vectors_of_the_whole_text(norm, positions):
    model, batch = network(replace(SHAPE, norm=norm, positions=positions)), rows()
    with torch.no_grad():
        whole = model(batch)[0].decoded
        state = model.read(batch, 34)
        for place in range(34):  # all rows have 34 tokens
            hidden, state = model(one_more(batch.decoder.ids[:, place]), state)
            assert torch.allclose(hidden.for_prediction[:, 0], whole[:, place], atol=1e-5)
            if place == 20:  # a search may reorder its rows
                order = torch.tensor([2, 0, 1])
                batch, whole, state = rows_of(batch, order), whole[order], rows_of(state, order)


def test_the_decoder_reads_the_source_of_its_own_example_and_both_share_one_table():
    model, batch = network(SHAPE), rows(examples=2)
    assert sum(p.shape == (200, 16) for p in model.parameters()) == 1
    assert model(batch.replace(decoder=None))[0].decoded is None
    with torch.no_grad():
        before = model(batch)[0].decoded
        other = batch.replace(ids=torch.where(batch.example == 0, 7, batch.ids))
        moved = (model(other)[0].decoded - before).abs().amax(2) > 0
    assert torch.equal(moved & batch.decoder.real, batch.decoder.example == 0)


def test_the_lengths_for_the_fast_kernel_show_each_token_the_source_of_its_example():
    """The kernel for examples of different lengths, by explicit loops. One row of the source is full, one has no text."""
    batch = random_batch(rows=4, length=24, examples=3, padding=0)
    batch = batch.replace(example=torch.where(torch.arange(4)[:, None] == 3, -1, batch.example))
    batch = apply_rules((Rewrite(), Masked(budget=0.3, replace=Delete(), at="none")), batch, vocabulary(), 0)
    decoder = batch.decoder.replace(example=torch.where(torch.arange(24) < 20, batch.decoder.example, -1))
    layer, x = CrossAttention(16, 2).eval(), torch.randn(2, 4, 24, 16, generator=torch.Generator().manual_seed(0))
    begins = [lengths.tolist() for lengths in cross_lengths(decoder, batch)]
    assert len(begins[0]) == len(begins[1])
    with torch.no_grad():
        expected = layer(x[0], cross_mask(decoder, batch, torch.float32), x[1])
        for (q, q_end), (k, k_end) in zip(pairwise(begins[0]), pairwise(begins[1]), strict=True):
            if q == q_end:
                continue
            assert k < k_end
            mine, read = x[0].flatten(0, 1)[None, q:q_end], x[1].flatten(0, 1)[None, k:k_end]
            all_seen = CrossMask(mask=torch.ones(1, 1, 1, k_end - k, dtype=torch.bool))
            real = decoder.real.flatten()[q:q_end]
            found = layer(mine, all_seen, read)[0][real]
            assert torch.allclose(found, expected.flatten(0, 1)[q:q_end][real], atol=1e-5)


def test_embeddings_may_be_scaled_by_the_root_of_the_width():
    plain, scaled = network(SHAPE), network(replace(SHAPE, scaled_embedding=True))
    scaled.load_state_dict(plain.state_dict())
    with torch.no_grad():
        plain.embed.token.weight *= 4.0  # the root of 16
        assert torch.allclose(plain(rows())[0].decoded, scaled(rows())[0].decoded, atol=1e-6)


def test_rotary_positions_are_refused_with_what_to_set():
    with pytest.raises(UserError, match="positions=Rotary rotates.*set positions=Learned or positions=Sinusoidal"):
        EncoderDecoder(positions=Rotary())


def test_its_cost_is_what_torch_counts():
    model, batch = network(SHAPE), random_batch(rows=2, length=40, examples=1, padding=0)
    for rule, asked in (
        (Rewrite(), 1.0),
        (Window(budget=0.5), 21 / 40),
    ):  # windows have a place more than half of a row
        hidden = Everything().apply(rule.apply(batch, vocabulary(), 0))
        with torch.no_grad(), FlopCounterMode(display=False) as counted, sdpa_kernel(SDPBackend.MATH):
            model(hidden)
        expected = SHAPE.flops(40, "everything", asked) * 80
        assert counted.get_total_flops() == pytest.approx(expected, rel=1e-3)
