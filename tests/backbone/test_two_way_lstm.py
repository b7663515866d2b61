"""The two-way LSTM against torch.nn.LSTM, its clipped cells and its embeddings from spelling against explicit loops."""

import pytest
import torch
from torch import nn

from tests.backbone.test_lstm import oracle, padded
from tests.small import spelled
from unmask.backbone import TwoWayLSTM
from unmask.backbone.lstm_layer import LSTMLayer
from unmask.backbone.spelling_embed import BEGIN, END, PADDING, SPECIAL, symbols_of

SHAPE = {"layers": 2, "width": 12, "characters": 3, "filters": (4, 0, 5)}


def network(**changes):
    torch.manual_seed(0)
    return TwoWayLSTM(**SHAPE | {"cells": 9} | changes).build(200, "everything").eval()


def test_a_word_is_its_begin_its_bytes_its_end_and_padding():
    batch = spelled(padded([9, 4], "right"))
    found = symbols_of(batch.columns["spelling"], batch.ids)
    for row in range(2):
        for place in range(9):
            word = [b for b in batch.columns["spelling"][row, place].tolist() if b != 255]
            word = word or [SPECIAL + int(batch.ids[row, place]) % 2]
            expected = [BEGIN, *word, END]
            assert found[row, place].tolist() == expected + [PADDING] * (7 - len(expected))


def test_the_vector_of_a_word_is_the_formula_by_loops():
    made, batch = network().embed, spelled(padded([9], "right"))
    with torch.no_grad():
        for place in (0, 3, 5):
            symbols = symbols_of(batch.columns["spelling"], batch.ids)[0, place]
            vectors, pooled = made.character.weight[symbols], []  # C D
            for convolution in made.convolutions:
                size = convolution.kernel_size[0]
                for weight, bias in zip(convolution.weight, convolution.bias, strict=True):  # D K
                    sums = [(vectors[i : i + size].T * weight).sum() + bias for i in range(len(symbols) - size + 1)]
                    pooled.append(max(0.0, *map(float, sums)))
            x = torch.tensor(pooled)
            for highway in made.highways:
                gate = torch.sigmoid(highway.gate(x))
                x = gate * torch.relu(highway.new(x)) + (1 - gate) * x
            assert torch.allclose(made(batch)[0, place], made.project(x), atol=1e-5)
    assert [c.kernel_size[0] for c in made.convolutions] == [1, 3]


@pytest.mark.parametrize("cells", [9, 6])  # 6 is half of the width: there is no projection
@pytest.mark.parametrize("side", ["left", "right"])
def test_each_half_of_a_layer_is_what_torch_reads_in_its_direction(cells, side):
    made, lengths = network(cells=cells), [9, 4, 1]
    batch = spelled(padded(lengths, side))
    with torch.no_grad():
        layers = made(batch)[0].layers
        embedded = made.embed(batch)
        for row in range(3):
            real = batch.real[row]
            x = embedded[row][real]
            assert torch.allclose(layers[0][row][real], torch.cat((x, x), 1))
            for stack, turn, half in ((made.from_left, False, slice(6)), (made.from_right, True, slice(6, 12))):
                y = (x.flip(0) if turn else x)[None]
                for number, layer in enumerate(stack):
                    out = oracle(layer)(y)[0]
                    y = out + y if number else out
                    expected = y[0].flip(0) if turn else y[0]
                    assert torch.allclose(layers[number + 1][row][real][:, half], expected, atol=1e-6)
            assert not layers[2][row][~real].any()


@pytest.mark.parametrize("projection", [None, 7])
def test_cells_and_projected_outputs_stay_within_the_clip(projection):
    torch.manual_seed(0)
    layer, x = LSTMLayer(5, 11, projection=projection, clip=0.2), 5 * torch.randn(2, 6, 5)
    out, state = layer(x)
    for row in range(2):
        h, c = torch.zeros(projection or 11), torch.zeros(11)
        for t in range(6):
            gates = (
                layer.input_weight @ x[row, t] + layer.input_bias + layer.recurrent_weight @ h + layer.recurrent_bias
            )
            i, f, g, o = gates.split(11)
            c = (torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)).clamp(-0.2, 0.2)
            h = torch.sigmoid(o) * torch.tanh(c)
            h = h if projection is None else (layer.projection @ h).clamp(-0.2, 0.2)
            assert torch.allclose(out[row, t], h, atol=1e-6)
        assert torch.allclose(state.cell[row], c, atol=1e-6)
    assert float(state.cell.abs().max()) == pytest.approx(0.2)
    layer.clip = 1e9
    clipped = layer(x)[0]
    layer.clip = None
    assert torch.allclose(clipped, layer(x)[0], atol=1e-5)


def test_it_cannot_continue_a_text_and_refuses_impossible_values():
    with pytest.raises(ValueError, match="it cannot continue a text"):
        network().cache(1)
    with pytest.raises(ValueError, match="backbone.width must be even"):
        TwoWayLSTM(width=7)
    with pytest.raises(ValueError, match="some of them over 0"):
        TwoWayLSTM(filters=(0, 0))
    assert isinstance(network().embed, nn.Module)
