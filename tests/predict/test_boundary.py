"""SpanBERT's boundary objective and the prediction of tokens, by loops with the modules' own weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.small import random_batch, vocabulary
from unmask.batch import Hidden
from unmask.errors import Mistake
from unmask.hide import Mask, Spans, Words
from unmask.initial import Initial
from unmask.predict import Boundary, Tokens

WIDTH, NARROW = 12, 6


def gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def dense(layer: nn.Linear, x: list[float]) -> list[float]:
    return [
        sum(w * v for w, v in zip(row, x, strict=True)) + b
        for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    ]


def normed(norm: nn.LayerNorm, x: list[float]) -> list[float]:
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    scale = 1 / math.sqrt(variance + norm.eps)
    return [(v - mean) * scale * w + b for v, w, b in zip(x, norm.weight.tolist(), norm.bias.tolist(), strict=True)]


def cross_entropy(scores: list[float], right: int) -> float:
    top = max(scores)
    return top + math.log(sum(math.exp(s - top) for s in scores)) - scores[right]


def shaken(module: nn.Module) -> nn.Module:
    """Every parameter at random, so that none is a bare zero or one."""
    dice = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=dice, dtype=torch.float64) * 0.5
    return module.double()


def given(units, width: int, embedding: int, rows: int = 2, length: int = 24):
    batch = random_batch(rows, length, examples=2, size=40)
    batch = Mask(units=units, budget=0.5).apply(batch, vocabulary(40), 0)
    dice = torch.Generator().manual_seed(1)
    vectors = torch.randn(rows, length, width, generator=dice, dtype=torch.float64)
    table = nn.Parameter(torch.randn(40, embedding, generator=dice, dtype=torch.float64))
    return batch, Hidden((vectors,)), table


@pytest.mark.parametrize("embedding", [WIDTH, NARROW])
@pytest.mark.parametrize("places", [2, 20])
def test_the_boundary_loss_reads_the_two_tokens_around_a_span_and_the_place_in_it(embedding, places):
    batch, hidden, table = given(Spans(), WIDTH, embedding)
    module = shaken(Boundary(places=places, width=5).build(WIDTH, table, Initial()))
    vectors, weights, bias = hidden.last.flatten(0, 1).tolist(), module.weight.tolist(), module.bias.tolist()
    total = count = 0.0
    targets = batch.targets
    runs, spans = set(), set()
    covered = set(targets.where[targets.weight > 0].tolist())
    for where, token, start, end, used in zip(
        *(t.tolist() for t in (targets.where, targets.ids, targets.start, targets.end, targets.weight)), strict=True
    ):
        if not used:
            continue
        left, right = where - 1, where + 1
        while left in covered:
            left -= 1
        while right in covered:
            right += 1
        runs.add(right - left - 1)
        spans.add(end - start + 1)
        place = module.place.weight[min(where - left - 1, places - 1)].tolist()
        x = vectors[left] + vectors[right] + place
        x = normed(module.first_norm, [gelu(v) for v in dense(module.first, x)])
        x = normed(module.second_norm, [gelu(v) for v in dense(module.second, x)])
        scores = [sum(a * b for a, b in zip(row, x, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
        total, count = total + cross_entropy(scores, token), count + 1
    assert max(runs) > 2
    assert runs != spans, "some spans touch"
    loss = module(hidden, batch)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(batch))


def test_the_boundary_does_not_read_the_hidden_tokens_themselves():
    batch, hidden, table = given(Spans(), WIDTH, WIDTH)
    module = shaken(Boundary(width=5).build(WIDTH, table, Initial()))
    vectors = hidden.last.clone().requires_grad_()
    module(Hidden((vectors,)), batch).total.backward()
    touched = vectors.grad.flatten(0, 1).abs().sum(-1) > 0
    covered = set(batch.targets.where[batch.targets.weight > 0].tolist())
    neighbours = {w - 1 for w in covered} | {w + 1 for w in covered}
    assert set(touched.nonzero()[:, 0].tolist()) == neighbours - covered


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("embedding", [WIDTH, NARROW])
def test_tokens_are_predicted_through_narrow_embeddings_too(embedding, activation):
    batch, hidden, table = given(Words(), WIDTH, embedding)
    module = shaken(Tokens(activation=activation).build(WIDTH, table, Initial()))
    assert module.weight is table  # tied
    assert module.dense.weight.shape == (embedding, WIDTH)

    def curve(x: float) -> float:
        if activation == "relu":
            return max(x, 0.0)
        if activation == "gelu":
            return gelu(x)
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    vectors, weights, bias = hidden.last.flatten(0, 1).tolist(), table.tolist(), module.bias.tolist()
    total = count = 0.0
    for where, token, used in zip(
        *(t.tolist() for t in (batch.targets.where, batch.targets.ids, batch.targets.weight)), strict=True
    ):
        if used:
            x = normed(module.norm, [curve(v) for v in dense(module.dense, vectors[where])])
            scores = [sum(a * b for a, b in zip(row, x, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
            total, count = total + cross_entropy(scores, token), count + 1
    loss = module(hidden, batch)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(batch))


def test_narrow_embeddings_need_the_transform():
    with pytest.raises(Mistake, match=r"embeddings of width 6 and layers of width 12 need predict.\*.transform=true"):
        Tokens(transform=False).build(WIDTH, nn.Parameter(torch.zeros(40, NARROW)), Initial())


@pytest.mark.parametrize("options", [{"places": 0}, {"width": 0}])
def test_a_boundary_without_places_is_a_mistake(options):
    with pytest.raises(Mistake, match=r"predict.\*.(places|width) must be 1 or more, got 0"):
        Boundary(**options)
