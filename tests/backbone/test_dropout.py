"""Dropout: where each value drops, how much that changes on average, and which kernel does it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.backbone import Transformer, TransformerXL, attention
from unmask.backbone.attention import Attention, AttentionMask, attention_mask
from unmask.backbone.relative import Relations, RelativeAttention, stream_of, waves
from unmask.errors import UserError
from unmask.see import LeftToRight

WIDTH, HEADS, LENGTH, COPIES, SHARE = 8, 2, 5, 6000, 0.4
CAUSAL = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


def plain_attention():
    """An attention, how to run it on copies of one text, and its values, B H K d."""
    made = Attention(WIDTH, HEADS, dropout=SHARE)
    x = torch.randn(1, LENGTH, WIDTH)
    values = made.qkv(x).view(1, LENGTH, 3, HEADS, -1)[:, :, 2].transpose(1, 2)
    return (
        made,
        lambda rows: made(x.expand(rows, -1, -1), AttentionMask(LENGTH, mask=CAUSAL.expand(rows, 1, -1, -1))),
        values,
    )


def relative_attention():
    """The same with relative positions."""
    made = RelativeAttention(WIDTH, HEADS, WIDTH // HEADS, segments=False, dropout=SHARE)
    x = torch.randn(1, LENGTH, WIDTH)
    values = made.key_value(x).chunk(2, 2)[1].unflatten(2, (HEADS, -1)).transpose(1, 2)
    table = waves(LENGTH - 1, 0, WIDTH, None, x.device)[None]

    def run(rows):
        relations = Relations(table, stream_of(CAUSAL.expand(rows, -1, -1), None))
        return made(x.expand(rows, -1, -1), None, None, relations)[0]

    return made, run, values


@pytest.mark.parametrize("make", [plain_attention, relative_attention])
def test_attention_dropout_leaves_out_weights_and_scales_up_the_rest(make):
    """A sum of w v over keys, each kept with chance 1 - p and divided by it: the mean is that of no dropout, and the
    variance p / (1 - p) times the sum of (w v) squared."""
    torch.manual_seed(0)
    made, run, values = make()
    with torch.no_grad():
        made.out.weight.copy_(torch.eye(WIDTH))
        if made.out.bias is not None:
            made.out.bias.zero_()
        made.eval()
        expected, weights = run(1), weights_of(run)
        made.train()
        drawn = run(COPIES)
    variance = (weights.square() @ values[0].square()).transpose(0, 1).flatten(1) * SHARE / (1 - SHARE)  # T D
    assert variance.max() > 1e-3
    error = (drawn.mean(0) - expected[0]).abs()
    assert (error < 5 * (variance / COPIES).sqrt() + 1e-6).all()
    torch.testing.assert_close(drawn.var(0), variance, rtol=0.15, atol=1e-5)


def weights_of(run):
    """H T K, the attention weights of the text: what is gathered if the value of each key is a unit vector of its own."""
    found = torch.empty(HEADS, LENGTH, LENGTH)
    original = torch.nn.functional.scaled_dot_product_attention

    def read(q, k, v, **options):
        found.copy_(original(q, k, torch.eye(LENGTH).expand(1, HEADS, -1, -1), **options)[0])
        return original(q, k, v, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", read)
        run(1)
    return found


@pytest.mark.parametrize(
    "spec, name",
    [
        (Transformer, "dropout"), (Transformer, "attention_dropout"), (Transformer, "activation_dropout"),
        (TransformerXL, "dropout"), (TransformerXL, "attention_dropout"),
    ],
)  # fmt: skip
def test_a_dropout_drops_in_training_alone_and_none_drops_nothing(spec, name):
    shape = {"layers": 2, "width": 16, "heads": 2, "feedforward": 32, "length": 40, "dropout": 0.0}
    batch = LeftToRight().apply(random_batch(rows=2, length=20))
    for share in (0.0, 0.5):
        made = spec(**shape | {name: share}).build(200, "left")
        with torch.no_grad():
            trained, again, served = (made.train(on)(batch)[0].last for on in (True, True, False))
        same = share == 0.0
        assert torch.allclose(trained, served, atol=1e-6) == same
        assert torch.allclose(trained, again, atol=1e-6) == same


def test_where_attention_weights_are_dropped_the_kernel_is_dense(monkeypatch):
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    monkeypatch.setattr(attention, "visible", lambda batch: mask)
    monkeypatch.setattr(attention, "stretches", lambda batch: torch.tensor([0, 3]))
    on_gpu = SimpleNamespace(shape=(2, 3), ids=SimpleNamespace(is_cuda=True))
    for pattern in ("everything", "left", "ranked"):
        dense = attention_mask(on_gpu, pattern, torch.bfloat16, compiled=True, dense=True)
        assert dense.mask is not None
        assert dense.lengths is None
        assert dense.blocks is None
    assert attention_mask(on_gpu, "left", torch.bfloat16).mask is None


def test_a_network_asks_for_the_dense_kernel_only_while_it_drops(monkeypatch):
    asked = []

    def recorded(*given, dense, **options):
        asked.append(dense)
        return attention_mask(*given, dense=dense, **options)

    monkeypatch.setattr("unmask.backbone.transformer.attention_mask", recorded)
    batch = LeftToRight().apply(random_batch(rows=2, length=20))
    for share, on in ((0.1, True), (0.1, False), (0.0, True)):
        spec = Transformer(layers=1, width=16, heads=2, feedforward=32, length=40, attention_dropout=share)
        spec.build(200, "left").train(on)(batch)
    assert asked == [True, False, False]


@pytest.mark.parametrize("size", ["base", "large"])
def test_the_character_transformer_drops_in_attention_and_after_relu_alone(size):
    backbone = recipes.get("char-transformer", size=size).system.backbone
    assert (backbone.attention_dropout, backbone.activation_dropout, backbone.dropout) == (0.55, 0.55, 0.0)


@pytest.mark.parametrize(
    "name", [name for name in recipes.names() if name not in ("char-transformer", "awd-lstm", "cove", "elmo")]
)
def test_no_other_recipe_drops_attention_weights_unless_it_is_set(name):
    assert recipes.get(name).system.backbone.attention_dropout == 0.0
    recipe = recipes.get(name, size="tiny", settings=["system.backbone.attention_dropout=0.1"])
    assert recipe.system.build(recipe, vocabulary(), 0).backbone.layer_modules[0][0].attention.dropout == 0.1


@pytest.mark.parametrize("spec", [Transformer(), TransformerXL()])
def test_a_dropout_of_all_weights_is_a_mistake(spec):
    with pytest.raises(UserError, match=r"backbone.attention_dropout must be in \[0, 1\), got 1.0"):
        replace(spec, attention_dropout=1.0)
