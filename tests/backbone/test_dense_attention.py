"""Attention with a mask: plain products, which are faster on a CPU in bfloat16, give what the fused kernel gives."""

import math

import pytest
import torch
import torch.nn.functional as F

from unmask.backbone import dense_attention
from unmask.backbone.dense_attention import plain_attention

ROWS, HEADS, QUERIES, KEYS, SIZE = 2, 3, 5, 7, 4
SEEN = torch.rand(ROWS, 1, QUERIES, KEYS, generator=torch.Generator().manual_seed(1)) < 0.5
SEEN[..., 0] = True
MASKS = {
    "seen": SEEN,
    "seen by all queries": SEEN[:, :, :1],
    "added": torch.randn(ROWS, HEADS, QUERIES, KEYS, generator=torch.Generator().manual_seed(2)).masked_fill(~SEEN, -math.inf),
}  # fmt: skip


def made(dtype=torch.float32):
    random = torch.Generator().manual_seed(0)
    shapes = [(ROWS, HEADS, QUERIES, SIZE), (ROWS, HEADS, KEYS, SIZE), (ROWS, HEADS, KEYS, SIZE)]
    return [torch.randn(shape, generator=random).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_plain_products_give_the_output_and_gradients_of_the_fused_kernel(mask):
    found, gradients = [], []
    for attend in (plain_attention, lambda *given: F.scaled_dot_product_attention(*given[:3], attn_mask=given[3])):
        inputs = made()
        found.append(attend(*inputs, mask))
        gradients.append(torch.autograd.grad(found[-1].square().sum(), inputs))
    torch.testing.assert_close(*found)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_weights_are_dropped_and_the_rest_is_scaled():
    query, key, _ = made()
    value = torch.ones(ROWS, HEADS, KEYS, SIZE)  # so the output is the sum of the weights that are left
    torch.manual_seed(0)
    sums = torch.stack([plain_attention(query, key, value, SEEN, dropout=0.5) for _ in range(500)])
    assert (sums.mean(0) - 1).abs().max() < 0.2
    assert sums.std(0).min() > 0.1
    assert sums.max() > 1.2


@pytest.mark.parametrize("dtype, keys, plain", [
    (torch.bfloat16, KEYS, True), (torch.float32, KEYS, False), (torch.bfloat16, dense_attention.PLAIN_KEYS + 1, False),
])  # fmt: skip
def test_plain_products_are_used_in_bfloat16_unless_there_are_many_keys(monkeypatch, dtype, keys, plain):
    called = []
    monkeypatch.setattr(dense_attention, "plain_attention", lambda *given, **more: called.append(given))
    query, key = torch.randn(1, 1, 2, SIZE, dtype=dtype), torch.randn(1, 1, keys, SIZE, dtype=dtype)
    dense_attention.dense_attention(query, key, key, torch.ones(1, 1, 2, keys, dtype=torch.bool))
    assert bool(called) == plain
