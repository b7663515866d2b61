"""SpanBERT's boundary objective and the prediction of tokens, by loops with the modules' own weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.small import masking, random_batch, vocabulary
from unmask.batch import Batch, Hidden
from unmask.errors import UserError
from unmask.hide import Spans, Words
from unmask.init_weights import InitWeights
from unmask.predict import SpanBoundary, Tokens
from unmask.predict.span_boundary import around

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
    batch = masking(units=units, budget=0.5).apply(batch, vocabulary(40), 0)
    dice = torch.Generator().manual_seed(1)
    vectors = torch.randn(rows, length, width, generator=dice, dtype=torch.float64)
    table = nn.Parameter(torch.randn(40, embedding, generator=dice, dtype=torch.float64))
    return batch, Hidden((vectors,)), table


def pairs_of(batch: Batch) -> list[tuple[int, int]]:
    """The places left and right of every hidden run that has text on both sides, as SpanBERT's program finds them.

    It has one text at a time, without its special tokens; sorts the spans, joins those that overlap or touch, and makes a
    pair of the places around each, unless it begins at the first or ends at the last token of the text."""
    found = []
    for text in texts_of(batch):
        used = batch.targets["tokens"].weight > 0
        ends = zip(
            batch.targets["tokens"].start[used].tolist(), batch.targets["tokens"].end[used].tolist(), strict=True
        )
        spans = sorted({(start - text[0], end - text[0]) for start, end in ends if text[0] <= start <= text[-1]})
        merged: list[list[int]] = []
        for start, end in spans:
            if not merged or merged[-1][1] + 1 < start:
                merged.append([start, end])
            else:
                merged[-1][1] = max(merged[-1][1], end)
        inner = [(start, end) for start, end in merged if start > 0 and end < len(text) - 1]
        found += [(text[0] + start - 1, text[0] + end + 1) for start, end in inner]
    return found


def texts_of(batch: Batch) -> list[list[int]]:
    """The flat places of every stretch of text between special tokens, padding and the ends of rows."""
    found: list[list[int]] = []
    for row, words in enumerate(batch.columns["word"].tolist()):
        before = -1
        for place, word in enumerate(words):
            if word >= 0 and before < 0:
                found.append([])
            if word >= 0:
                found[-1].append(row * batch.shape[1] + place)
            before = word
    return found


@pytest.mark.parametrize("embedding", [WIDTH, NARROW])
@pytest.mark.parametrize("places", [2, 20])
def test_the_boundary_loss_reads_the_two_tokens_around_a_span_and_the_place_in_it(embedding, places):
    batch, hidden, table = given(Spans(), WIDTH, embedding, rows=3, length=60)
    module = shaken(SpanBoundary(places=places, width=5).build(WIDTH, table, InitWeights()))
    vectors, weights, bias = hidden.last.flatten(0, 1).tolist(), module.weight.tolist(), module.bias.tolist()
    token = dict(zip(batch.targets["tokens"].where.tolist(), batch.targets["tokens"].ids.tolist(), strict=True))
    total = count = 0.0
    pairs = pairs_of(batch)
    for left, right in pairs:
        for where in range(left + 1, right):
            place = module.place.weight[min(where - left - 1, places - 1)].tolist()
            x = vectors[left] + vectors[right] + place
            x = normed(module.first_norm, [gelu(v) for v in dense(module.first, x)])
            x = normed(module.second_norm, [gelu(v) for v in dense(module.second, x)])
            scores = [sum(a * b for a, b in zip(row, x, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
            total, count = total + cross_entropy(scores, token[where]), count + 1
    runs, used = {right - left - 1 for left, right in pairs}, batch.targets["tokens"].weight > 0
    assert max(runs) > 2
    assert runs != set((batch.targets["tokens"].end - batch.targets["tokens"].start + 1)[used].tolist()), (
        "some spans touch"
    )
    assert 0 < count < int(used.sum()), "some runs stand next to [CLS] or [SEP]"
    loss = module(hidden, batch)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(batch))
    tokens = Tokens().build(WIDTH, table, InitWeights())
    assert float(tokens.count(batch)) == int(used.sum()), "all stay targets of the masked language model"


def test_the_boundary_does_not_read_the_hidden_tokens_themselves_nor_special_ones():
    batch, hidden, table = given(Spans(), WIDTH, WIDTH, rows=3, length=60)
    module = shaken(SpanBoundary(width=5).build(WIDTH, table, InitWeights()))
    vectors = hidden.last.clone().requires_grad_()
    module(Hidden((vectors,)), batch).total.backward()
    touched = vectors.grad.flatten(0, 1).abs().sum(-1) > 0
    assert set(touched.nonzero()[:, 0].tolist()) == {place for pair in pairs_of(batch) for place in pair}


@pytest.mark.parametrize("seed", range(20))
def test_runs_have_boundaries_where_rows_have_no_special_tokens_too(seed):
    """Rows of text alone: a run at the end of a row is not bounded by the next row."""
    batch = random_batch(3, 14, seed=seed, size=40, padding=0)
    columns = batch.columns | {"word": torch.arange(14).expand(3, 14)}
    batch = batch.replace(columns=columns, ids=batch.ids.clamp(min=5))
    batch = masking(units=Spans(), budget=0.6).apply(batch, vocabulary(40), seed)
    near, wanted = around(batch), set(pairs_of(batch))
    counted = near.weight > 0
    assert set(zip(near.left[counted].tolist(), near.right[counted].tolist(), strict=True)) == wanted
    assert int(counted.sum()) == sum(right - left - 1 for left, right in wanted)


def test_a_batch_without_such_runs_has_no_boundary_loss():
    batch = random_batch(1, 14, size=40, padding=0)
    batch = masking(budget=1.0).apply(batch, vocabulary(40), 0)
    module = SpanBoundary(width=5).build(WIDTH, nn.Parameter(torch.zeros(40, WIDTH)), InitWeights())
    loss = module(Hidden((torch.zeros(1, 14, WIDTH),)), batch)
    assert (loss.total.item(), loss.count.item()) == (0.0, 0.0)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("embedding", [WIDTH, NARROW])
def test_tokens_are_predicted_through_narrow_embeddings_too(embedding, activation):
    batch, hidden, table = given(Words(), WIDTH, embedding)
    module = shaken(Tokens(activation=activation).build(WIDTH, table, InitWeights()))
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
        *(
            t.tolist()
            for t in (batch.targets["tokens"].where, batch.targets["tokens"].ids, batch.targets["tokens"].weight)
        ),
        strict=True,
    ):
        if used:
            x = normed(module.norm, [curve(v) for v in dense(module.dense, vectors[where])])
            scores = [sum(a * b for a, b in zip(row, x, strict=True)) + c for row, c in zip(weights, bias, strict=True)]
            total, count = total + cross_entropy(scores, token), count + 1
    loss = module(hidden, batch)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert loss.count.item() == count == float(module.count(batch))


def test_narrow_embeddings_need_the_transform():
    with pytest.raises(UserError, match=r"embeddings of width 6 and layers of width 12: set predict.\*.transform=true"):
        Tokens(transform=False).build(WIDTH, nn.Parameter(torch.zeros(40, NARROW)), InitWeights())


@pytest.mark.parametrize("options", [{"places": 0}, {"width": 0}])
def test_a_boundary_without_places_is_a_mistake(options):
    with pytest.raises(UserError, match=r"predict.\*.(places|width) must be 1 or more, got 0"):
        SpanBoundary(**options)
