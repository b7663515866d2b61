"""What a decoder reads from its source, against the weights by explicit loops; and the verb that shows and draws it."""

from __future__ import annotations

import json
import math

import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.contracts.every import case
from unmask.errors import UserError
from unmask.infer.attention import AttentionWeights, attention_to_source
from unmask.infer.batches import left_padded, one_more
from unmask.infer.decoder_token import DecoderToken
from unmask.infer.model import Model, save_run


def model_of(name: str, folder, variant: str = "paper") -> Model:
    made = case(name, variant)
    return Model(made.build().eval(), made.recipe, made.tokenizer, folder)


def test_the_weights_of_a_recurrent_decoder_are_its_softmax_by_loops(tmp_path):
    model = model_of("cove", tmp_path, "translator")
    found = attention_to_source(model, "the doctor examined the data", "the data").value
    step, network = DecoderToken(model), model.system.backbone
    read, _ = step.source(model.tokenizer.encode("the doctor examined the data"), 5)
    with torch.no_grad():
        state = model.system.read_source(left_padded([read], model.tokenizer.vocabulary.pad), 9)
        token = torch.tensor([step.first[-1]])
        for first in step.first[:-1]:
            state = model.system.read_on(one_more(torch.tensor([first])), state)[1]
        query = model.system.read_on(one_more(token), state)[1].cells[-1].output[0]
        scores = [float(query @ network.attention.score.between.weight @ key) for key in state.keys[0]]
    expected = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    assert found.layers[0][0, 0].tolist() == pytest.approx(expected, abs=1e-5)
    assert len(found.source) == len(read)
    assert found.layers[0].shape == (1, len(found.tokens), len(read))


def test_a_decoder_of_a_transformer_has_weights_for_each_layer_and_head(tmp_path):
    model = model_of("transformer", tmp_path)
    found = attention_to_source(model, "the doctor examined the data", "the data").value
    spec = model.recipe.system.backbone
    assert len(found.layers) == spec.decoder_layers
    for weights in found.layers:
        assert weights.shape == (spec.heads, len(found.tokens), len(found.source))
        torch.testing.assert_close(weights.sum(2), torch.ones(weights.shape[:2]))


def test_the_verb_shows_and_draws_weights(tmp_path):
    save_run(model_of("bert", tmp_path), tmp_path / "run")
    picture = tmp_path / "weights.png"
    shown = works(
        "attend", tmp_path / "run", "The doctor examined", "--layer", 1, "--head", 2, "--picture", picture
    ).out
    assert "layer 1, head 2" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    values = json.loads(works("attend", tmp_path / "run", "The doctor examined", "--json").out)
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in values["weights"])
    assert "--layer must be from 1 to 2, got 3" in mistake("attend", tmp_path / "run", "The doctor", "--layer", 3)
    assert "has no decoder that reads a source" in mistake("attend", tmp_path / "run", "The doctor", "the data")


def test_a_file_that_no_picture_can_be_drawn_into_is_refused(tmp_path):
    save_run(model_of("bert", tmp_path), tmp_path / "run")
    for name, said in (("w.txt", "must be a file that ends in .png or .svg or .pdf"), ("no/w.png", "does not exist")):
        assert said in mistake("attend", tmp_path / "run", "The doctor", "--picture", tmp_path / name)


def test_an_empty_side_is_refused(tmp_path):
    model = model_of("cove", tmp_path, "translator")
    for source, target in (("", "the data"), ("the data", " ")):
        with pytest.raises(UserError, match="one is empty: give both"):
            attention_to_source(model, source, target)


def test_a_network_whose_attention_reads_a_source_asks_for_the_target(tmp_path):
    save_run(model_of("cove", tmp_path, "translator"), tmp_path / "run")
    assert "give a second text, the TARGET that it writes" in mistake("attend", tmp_path / "run", "The doctor")


def test_a_character_that_no_font_draws_is_said(tmp_path):
    unknown, told = "\U0010fffd", list[dict[str, str]]()
    found = unmask.attended(AttentionWeights((unknown, "a"), (torch.eye(2)[None],)))
    found.draw(tmp_path / "weights.png", tell=told.append)
    assert f"no font here can draw 1 characters of the picture ({unknown})" in told[0]["text"]
