"""The LSTM against torch.nn.LSTM with the same weights: directions, padding, cells that continue, and its dropouts."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from tests.small import random_batch
from unmask.backbone import LSTM
from unmask.backbone.lstm import LockedDropout
from unmask.backbone.lstm_layer import LSTMLayer
from unmask.batch import Batch

SHAPE = LSTM(layers=2, width=12, inner=20)
STILL = dict.fromkeys(("dropout", "embedding_dropout", "input_dropout", "hidden_dropout", "weight_dropout"), 0.0)


def network(**changes):
    torch.manual_seed(0)
    return dataclasses.replace(SHAPE, **changes).build(200, "left")


def oracle(layer: LSTMLayer) -> nn.LSTM:
    """torch's own module with the weights of a layer."""
    projection = layer.outputs if layer.projection is not None else 0
    made = nn.LSTM(layer.input_weight.shape[1], layer.cells, batch_first=True, proj_size=projection)
    names = ["input_weight", "recurrent_weight", "input_bias", "recurrent_bias"] + ["projection"] * bool(projection)
    for name, parameter in zip(names, made.parameters(), strict=True):
        parameter.data.copy_(getattr(layer, name))
    return made


def padded(lengths: list[int], side: str, width: int = 9) -> Batch:
    """Rows with one example each, padded at one side."""
    batch = random_batch(rows=len(lengths), length=width, padding=0)
    place, sizes = torch.arange(width), torch.tensor(lengths)[:, None]
    real = place >= width - sizes if side == "left" else place < sizes
    position = (real.cumsum(1) - 1).clamp(min=0)
    return batch.replace(example=real.long() - 1, position=position, ids=batch.ids * real)


@pytest.mark.parametrize("projection", [None, 7])
def test_a_layer_computes_what_torch_does_and_so_do_its_gradients(projection):
    torch.manual_seed(0)
    layer, x = LSTMLayer(5, 11, projection=projection), torch.randn(3, 8, 5)
    expected, (output, cell) = oracle(layer)(x)
    out, state = layer(x)
    assert torch.allclose(out, expected, atol=1e-6)
    assert torch.allclose(state.output, output[0], atol=1e-6)
    assert torch.allclose(state.cell, cell[0], atol=1e-6)
    made = oracle(layer)
    made(x)[0].square().sum().backward()
    out.square().sum().backward()
    for one, other in zip(made.parameters(), layer.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_a_padded_row_gets_the_vectors_that_it_gets_alone(side, direction):
    made, lengths = network(direction=direction, carry=False).eval(), [9, 4, 1]
    batch = padded(lengths, side)
    with torch.no_grad():
        together = made(batch)[0].layers
        for row, length in enumerate(lengths):
            ids = batch.ids[row][batch.real[row]][None]
            x = made.embed.token(ids if direction == "left" else ids.flip(1))
            for number, layer in enumerate(made.cells, 1):
                x = oracle(layer)(x)[0]
                expected = x if direction == "left" else x.flip(1)
                assert torch.allclose(together[number][row][batch.real[row]], expected[0], atol=1e-6)
        assert length == 1


def test_the_cells_after_padded_rows_are_those_of_their_last_tokens():
    made, batch = network().eval(), padded([9, 4], "left")
    with torch.no_grad():
        _, state = made(batch, made.cache(2))
        for row in range(2):
            x = made.embed.token(batch.ids[row][batch.real[row]][None])
            for layer, cells in zip(made.cells, state, strict=True):
                x, (output, cell) = oracle(layer)(x)
                assert torch.allclose(cells.output[row], output[0, 0], atol=1e-6)
                assert torch.allclose(cells.cell[row], cell[0, 0], atol=1e-6)


def test_a_memory_that_keeps_a_part_of_a_row_holds_the_cells_after_that_part():
    made, batch = network(**STILL), random_batch(rows=2, length=10, padding=0)
    first = batch.replace(ids=batch.ids[:, :6], example=batch.example[:, :6])
    vectors, kept = made(batch.replace(reuse=6), made.cache(2))
    whole, _ = made(batch, made.cache(2))
    _, expected = made(first, made.cache(2))
    assert torch.allclose(vectors.last, whole.last, atol=1e-6)
    for one, other in zip(kept, expected, strict=True):
        assert torch.allclose(one.cell, other.cell, atol=1e-6)
        assert not one.cell.requires_grad


def test_weight_dropout_drops_recurrent_weights_once_for_all_steps():
    torch.manual_seed(0)
    layer, x = LSTMLayer(5, 11, weight_dropout=0.5), torch.randn(3, 8, 5)
    torch.manual_seed(1)
    out, _ = layer(x)
    torch.manual_seed(1)
    mask = nn.functional.dropout(torch.ones_like(layer.recurrent_weight), 0.5)
    made = oracle(layer)
    made.weight_hh_l0.data *= mask
    assert 0.3 < float((mask == 0).float().mean()) < 0.7
    assert torch.allclose(out, made(x)[0], atol=1e-6)
    out.sum().backward()
    assert not layer.recurrent_weight.grad[mask == 0].any()
    assert torch.equal(layer.eval()(x)[0], oracle(layer)(x)[0])


def test_a_locked_mask_is_the_same_at_all_places_of_a_row_and_differs_between_rows():
    torch.manual_seed(0)
    out = LockedDropout(0.4)(torch.ones(50, 6, 40))
    assert (out == out[:, :1]).all()
    assert not (out[0] == out[1]).all()
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 0.6])
    assert abs(float((out == 0).float().mean()) - 0.4) < 0.03


def test_embedding_dropout_drops_whole_words_in_all_places():
    made = network(**STILL | {"embedding_dropout": 0.5}).embed
    ids = torch.arange(200).repeat(2, 1)
    torch.manual_seed(0)
    share = made(ids) / made.token(ids)  # B T D
    assert (share == share[:1, :, :1]).all()
    assert abs(float((share == 0).float().mean()) - 0.5) < 0.15


def test_tokens_are_predicted_from_dropped_vectors_and_all_else_reads_the_vectors_themselves():
    batch = random_batch(rows=2, length=10, padding=0)
    made = network(**STILL | {"dropout": 0.5})
    hidden, _ = made(batch)
    assert torch.equal(hidden.for_prediction[hidden.for_prediction != 0], (2 * hidden.last)[hidden.for_prediction != 0])
    assert bool((hidden.for_prediction == 0).any())
    assert made.eval()(batch)[0].decoded is None


def test_impossible_values_are_mistakes():
    with pytest.raises(ValueError, match="set carry=false"):
        LSTM(direction="right")
    with pytest.raises(ValueError, match=r"backbone.weight_dropout must be in \[0, 1\), got 1.5"):
        LSTM(weight_dropout=1.5)
    with pytest.raises(ValueError, match="continued from left to right"):
        LSTM(direction="right", carry=False).build(20, "ranked").cache(1)
