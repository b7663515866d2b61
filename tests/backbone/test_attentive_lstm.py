"""Attention of a recurrent decoder: scores and steps against the papers' formulas by loops; the encoder against torch.nn.LSTM."""

from __future__ import annotations

import math

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask.backbone import AttentiveLSTM, BiLSTM, Concat, Dot, General
from unmask.backbone.attention_score import SourceAttention
from unmask.errors import UserError
from unmask.hide import Rewrite
from unmask.infer.batches import one_more
from unmask.see import Everything
from unmask.tree import rows_of

SHAPE = {"layers": 2, "embedding": 5, "length": 40, "dropout": 0.0}


def network(spec):
    torch.manual_seed(0)
    model = spec.build(200, "everything").eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def rows(count: int = 3, length: int = 12):
    batch = random_batch(rows=count, length=length, examples=1, padding=3)
    return Everything().apply(Rewrite().apply(batch, vocabulary(), 0))


@pytest.mark.parametrize("score", [Dot(), General(), Concat()])
def test_attention_is_the_formula_of_its_score_by_loops(score):
    torch.manual_seed(0)
    width = 4
    module = SourceAttention(score, width, width)
    query, keys = torch.randn(2, 3, width), torch.randn(2, 5, width)
    real = torch.tensor([[True] * 5, [True, True, True, False, False]])
    weights = {name: value.tolist() for name, value in module.named_parameters()}

    def scored(q: list[float], k: list[float]) -> float:
        if isinstance(score, Dot):
            return sum(a * b for a, b in zip(q, k, strict=True))
        if isinstance(score, General):
            between = weights["score.between.weight"]
            return sum(q[i] * between[i][j] * k[j] for i in range(width) for j in range(width))
        inner = [
            math.tanh(
                sum(
                    weights["score.query.weight"][i][j] * q[j] + weights["score.key.weight"][i][j] * k[j]
                    for j in range(width)
                )
            )
            for i in range(width)
        ]
        return sum(a * b for a, b in zip(weights["score.out.weight"][0], inner, strict=True))

    found = module(query, module.prepare(keys, real)).detach()
    for row in range(2):
        for place in range(3):
            seen = [s for s in range(5) if real[row, s]]
            exps = [math.exp(scored(query[row, place].tolist(), keys[row, s].tolist())) for s in seen]
            for d in range(width):
                expected = sum(e / sum(exps) * float(keys[row, s, d]) for e, s in zip(exps, seen, strict=True))
                assert float(found[row, place, d]) == pytest.approx(expected, abs=1e-5)


def test_the_encoder_is_torchs_bidirectional_lstm():
    model = network(BiLSTM(**SHAPE, cells=3, joined=True))
    theirs = torch.nn.LSTM(5, 3, num_layers=2, bidirectional=True, batch_first=True)
    for number in range(2):
        for side, ending in ((model.left, ""), (model.right, "_reverse")):
            names = ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")
            for mine, name in zip(names, ("weight_ih", "weight_hh", "bias_ih", "bias_hh"), strict=True):
                getattr(theirs, f"{name}_l{number}{ending}").data.copy_(getattr(side[number], mine))
    batch = rows()
    found = model(batch)[0]
    for row in range(3):
        length = int(batch.real[row].sum())
        vectors = model.embed(batch.ids[row : row + 1, :length])
        expected = torch.cat((vectors, theirs(vectors)[0]), 2)[0]  # [vector; CoVe]
        torch.testing.assert_close(found.last[row, :length], expected, atol=1e-5, rtol=1e-5)


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_decoder_is_the_papers_steps_by_loops(when):
    model, batch = network(AttentiveLSTM(**SHAPE, width=6, when=when)), rows()
    decoder, spec = batch.decoder, model.spec
    found = model(batch)[0]
    layers, ends = model.read_layers(batch)
    between = model.attention.score.between.weight
    for row in range(3):
        keys = layers[-1][row][batch.real[row]]
        h, c = [end[row] for end in ends], [torch.zeros(spec.width)] * 2
        fed = torch.zeros(spec.width)

        def attend(q, keys=keys):
            return torch.softmax(keys @ (between.T @ q), 0) @ keys

        for place in range(int(decoder.real[row].sum())):
            gathered = attend(h[-1]) if when == "before" else None
            x = torch.cat((model.decoder_embed(decoder.ids[row, place]), fed if gathered is None else gathered))
            for number, layer in enumerate(model.decoder):
                gates = layer.weight_ih @ x + layer.bias_ih + layer.weight_hh @ h[number] + layer.bias_hh
                i, f, g, o = gates.chunk(4)
                c[number] = sigmoid(f) * c[number] + sigmoid(i) * torch.tanh(g)
                h[number] = x = sigmoid(o) * torch.tanh(c[number])
            gathered = attend(x) if gathered is None else gathered
            fed = torch.tanh(model.combine(torch.cat((gathered, x))))
            torch.testing.assert_close(found.decoded[row, place], fed, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("when", ["before", "after"])
def test_tokens_one_by_one_with_a_state_get_the_vectors_of_the_whole_text(when):
    model, batch = network(AttentiveLSTM(**SHAPE, width=6, when=when)), rows()
    with torch.no_grad():
        whole = model(batch)[0].decoded
        state = model.read(batch, 9)
        for place in range(9):  # all rows have nine tokens
            hidden, state = model(one_more(batch.decoder.ids[:, place]), state)
            torch.testing.assert_close(hidden.for_prediction[:, 0], whole[:, place], atol=1e-5, rtol=1e-5)
            if place == 4:  # a search may reorder its rows
                order = torch.tensor([2, 0, 1])
                batch, whole, state = rows_of(batch, order), whole[order], rows_of(state, order)


def test_fixed_vectors_never_train_and_are_saved():
    model = network(AttentiveLSTM(**SHAPE, width=6, fixed=True))
    assert "embed.token.weight" not in dict(model.named_parameters())
    assert "embed.token.weight" in model.state_dict()


def test_dot_needs_equal_widths():
    with pytest.raises(UserError, match="set backbone.score=General"):
        Dot().scorer(3, 4)
