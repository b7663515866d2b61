"""What the kernels of a GPU are told about a window: the rule of FlexAttention, and the arguments of the variable-length kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.small import random_batch
from unmask.backbone import Local, Rotary, Transformer
from unmask.backbone.attention import AttentionMask, blocks, stretches, within
from unmask.see import Everything, LeftToRight, RightToLeft

LENGTH = 40
SHAPE = Transformer(
    layers=2, width=16, heads=2, feedforward=24, length=LENGTH, dropout=0.0,
    positions=Rotary(local_theta=20.0), local=Local(window=6, every=2),
)  # fmt: skip


def by_loops(q: Tensor, k: Tensor, v: Tensor, begins: Tensor, window: tuple[int, int]) -> Tensor:
    """What the variable-length kernel is documented to compute, token by token; q, k, v: N H d."""
    found, edges = torch.zeros_like(q), begins.tolist()
    for a, b in zip(edges, edges[1:], strict=False):
        for i in range(a, b):
            left = a if window[0] < 0 else max(a, i - window[0])
            right = b if window[1] < 0 else min(b, i + window[1] + 1)
            scores = torch.einsum("hd,khd->hk", q[i], k[left:right]) / q.shape[2] ** 0.5
            found[i] = torch.einsum("hk,khd->hd", scores.softmax(1), v[left:right])
    return found


@pytest.mark.parametrize("view", [Everything(), LeftToRight()], ids=["everything", "left"])
@torch.no_grad()
def test_the_variable_length_kernel_is_given_the_window_of_the_mask(monkeypatch, view):
    def kernel(q, k, v, begins, same, longest, also, *, window_size):
        assert begins is same
        return by_loops(q, k, v, begins, window_size)

    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", kernel)
    network = SHAPE.build(200, view.pattern).eval()
    batch = view.apply(random_batch(2, LENGTH, examples=3))
    x = torch.randn(2, LENGTH, 16, generator=torch.Generator().manual_seed(0))
    fast = AttentionMask(LENGTH, lengths=stretches(batch), causal=view == LeftToRight())
    _, dense, _ = network._mask(batch, None, torch.float32)
    for window in (None, 3):
        masks = [mask if window is None else within(mask, batch, window, batch.position) for mask in (fast, dense)]
        found, expected = (network.blocks[0].attention(x, mask) for mask in masks)
        torch.testing.assert_close(found[batch.real], expected[batch.real])


@pytest.mark.parametrize("view", [Everything(), LeftToRight(), RightToLeft()], ids=["everything", "left", "right"])
@pytest.mark.parametrize("window", [None, 1, 3])
def test_the_rule_of_flex_attention_is_that_of_the_dense_mask(view, window):
    batch = view.apply(random_batch(2, LENGTH, examples=3))
    rule = blocks(batch, window).mask_mod
    for b, q, k in ((b, q, k) for b in range(2) for q in range(0, LENGTH, 3) for k in range(LENGTH)):
        same, rank = batch.example[b, q] == batch.example[b, k], batch.rank[b, k] <= batch.rank[b, q]
        near = window is None or abs(int(batch.position[b, q] - batch.position[b, k])) <= window
        assert bool(rule(*map(torch.tensor, (b, 0, q, k)))) == (bool(same & rank) and near)


@torch.no_grad()
def test_a_layer_is_one_graph_for_the_compiler():
    """Layers are compiled one by one. A break in the graph would cost speed, and some versions of torch refuse it."""
    spec = replace(SHAPE, norm="pre", gated=True, biases=False, first_norm=False)
    network = spec.build(200, "everything").eval()
    batch = Everything().apply(random_batch(2, LENGTH, examples=3))
    expected = network(batch)[0].last
    for block in network.blocks:
        block.forward = torch.compile(block.forward, dynamic=False, fullgraph=True, backend="eager")
    torch.testing.assert_close(network(batch)[0].last, expected)
