"""SpelledBiLSTM against torch's own bidirectional LSTM with projections, and a run of word vectors that has it above them."""

import numpy as np
import pytest
import torch
from torch import nn

import unmask
from tests.command import mistake, works
from tests.small import random_batch
from unmask.backbone import SpelledBiLSTM
from unmask.batch import Batch
from unmask.errors import UserError
from unmask.infer.passes import laid_out
from unmask.tasks.tag import Tag

SHAPE = {"cells": (6, 4), "projection": 5, "embedding": 6, "characters": 3, "filters": (0, 2, 1), "dropout": 0.0}
WORDS = "the doctor opened a case in london . our server sold no valves".split()


def batch_of() -> Batch:
    batch = random_batch(3, 12, padding=4)
    spelling = torch.stack((batch.ids % 7 + 97, batch.ids % 5 + 97), -1).where(batch.ids[..., None] > 4, 255)
    return batch.replace(columns=batch.columns | {"spelling": spelling})


def test_layers_are_torchs_bidirectional_lstms_and_the_last_vectors_are_all_layers():
    torch.manual_seed(0)
    spec = SpelledBiLSTM(**SHAPE)
    network, batch = spec.build(200, "everything").eval(), batch_of()
    hidden, _ = network(batch)
    assert [layer.shape[2] for layer in hidden.layers] == [9, 10, 8, 18]
    assert (spec.width, spec.direction, spec.layers) == (18, 5, 2)
    words, length = hidden.layers[0], int(batch.real[0].sum())
    x = words[:, :length]
    for number, (cells, out) in enumerate(((6, 5), (4, 4))):
        theirs = nn.LSTM(x.shape[2], cells, batch_first=True, bidirectional=True, proj_size=out if out < cells else 0)
        for side, suffix in ((network.left, ""), (network.right, "_reverse")):
            own = side[number]
            names = {
                "weight_ih": own.input_weight,
                "weight_hh": own.recurrent_weight,
                "bias_ih": own.input_bias,
                "bias_hh": own.recurrent_bias,
            }
            names |= {} if own.projection is None else {"weight_hr": own.projection}
            for name, tensor in names.items():
                getattr(theirs, f"{name}_l0{suffix}").data.copy_(tensor.data)
        x = theirs(x)[0]
        torch.testing.assert_close(hidden.layers[number + 1][:, :length], x)
    assert torch.equal(hidden.last, torch.cat(hidden.layers[1:3], 2))
    assert not hidden.last[:, length:].any()


def test_a_word_is_its_vector_and_the_largest_outputs_of_convolutions_over_its_characters():
    torch.manual_seed(0)
    network, batch = SpelledBiLSTM(**SHAPE).build(200, "everything").eval(), batch_of()
    found, embed = network.embed(batch), network.embed
    row, at = 1, 2
    symbols = [258, *batch.columns["spelling"][row, at].tolist(), 259]  # the word between its begin and its end
    vectors = embed.character.weight[torch.tensor(symbols)]
    wanted = [embed.token.weight[batch.ids[row, at]]]
    for size, convolution in zip((2, 3), embed.convolutions, strict=True):
        outputs = [
            torch.einsum("oci,ic->o", convolution.weight, vectors[begin : begin + size]) + convolution.bias
            for begin in range(len(symbols) - size + 1)
        ]
        wanted.append(torch.stack(outputs).amax(0).relu())
    torch.testing.assert_close(found[row, at], torch.cat(wanted))


def test_without_filters_it_needs_no_spelling():
    spec = SpelledBiLSTM(**SHAPE | {"filters": ()})
    batch = random_batch(2, 12)
    assert {need.fact for need in SpelledBiLSTM(**SHAPE).needs} - {need.fact for need in spec.needs} == {
        "column:spelling"
    }
    assert spec.build(200, "everything")(batch)[0].last.shape == (2, 12, 18)


@pytest.mark.parametrize(
    "values,message",
    [
        ({"cells": ()}, r"write \(1024, 512\)"),
        ({"projection": 0}, "backbone.projection must be none or 1 or more"),
        ({"filters": (0, 0)}, "some of them over 0"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_wrong_sizes_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        SpelledBiLSTM(**SHAPE | values)


@pytest.fixture
def vectors(tmp_path):
    file, random = tmp_path / "v.txt", np.random.default_rng(0)
    file.write_text(
        "".join(f"{w} {' '.join(f'{x:.3f}' for x in random.normal(size=6))}\n" for w in WORDS), encoding="utf-8"
    )
    return file


def test_a_run_of_word_vectors_may_have_a_network_above_them(vectors, tmp_path):
    network = "system.backbone=SpelledBiLSTM(cells=(6,4), projection=5, embedding=6, characters=3, filters=(0,2))"
    works("import", vectors, "--set", network, "--out", tmp_path / "run")
    model = unmask.load(tmp_path / "run", device="cpu")
    number = model.tokenizer.backend.token_to_id("doctor")
    known = {
        line.split()[0]: [float(x) for x in line.split()[1:]]
        for line in vectors.read_text(encoding="utf-8").splitlines()
    }
    assert model.system.backbone.embed.token.weight[number].tolist() == pytest.approx(known["doctor"])
    rows, _ = laid_out(model, Tag().lay_out(Tag().given(["The DOCTOR slept"]), labelled=False))
    ids = [model.tokenizer.backend.token_to_id(word) for word in ("the", "doctor", "[UNK]")]
    assert rows.ids[0].tolist() == ids  # words are looked up in lower case
    assert bytes(rows.columns["spelling"].values[0, 1, :6].tolist()) == b"DOCTOR"  # and spelled as they are
    assert model.recipe.adapt.rate * 768 / model.recipe.system.backbone.width == pytest.approx(1e-3)


def test_a_network_that_cannot_hold_the_vectors_is_refused(vectors, tmp_path):
    said = mistake("import", vectors, "--set", "system.backbone=SpelledBiLSTM", "--out", tmp_path / "run")
    assert (
        "have 6 dimensions, and the network has a table of embeddings of 300: set system.backbone.embedding=6"
        in " ".join(said.split())
    )
    said = mistake(
        "import", vectors, "--set", "system.backbone=TwoWayLSTM(width=12,cells=4)", "--out", tmp_path / "run"
    )
    assert "a table of embeddings of none" in " ".join(said.split())
    assert not (tmp_path / "run").exists()
