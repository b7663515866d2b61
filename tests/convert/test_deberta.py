"""DeBERTa in and out of transformers: what is special about it; every recipe's own tests are in test_recipes.py."""

import json

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import assert_same_numbers, classifier, opened_by_auto
from tests.convert.parts import (
    PAIRS,
    PARITY,
    TEXTS,
    assert_same_vectors,
    edit_json,
    folder_of,
    look,
    model_of,
    recipe_of,
    run,
    score,
    shaken,
    tokenizer,
    weights,
)
from unmask.backbone import NoPositions
from unmask.backbone.disentangled import Disentangled
from unmask.convert import architecture_of, export_hf, import_hf
from unmask.errors import UserError
from unmask.infer.model import open_run, save_run

DECODER = "system.backbone.decoder=MaskDecoder"
BOTH = pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])


def deberta(head=hf.DebertaForMaskedLM, **changes):
    usual = {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "pad_token_id": 1,
        "max_position_embeddings": 96, "relative_attention": True, "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False, "cls_dropout": 0.2,
    }  # fmt: skip
    return shaken(head(hf.DebertaConfig(vocab_size=300, **(usual | changes))))


def imported(network, path):
    report = import_hf(folder_of(network, tokenizer("byte"), path / "hf"), path / "run")
    return open_run(path / "run", device="cpu"), report


def pretrained(path, *settings):
    return model_of(recipe_of("deberta", *settings), tokenizer("byte"), path)


@BOTH
@pytest.mark.parametrize("changes", [
    {}, {"max_relative_positions": 7}, {"max_relative_positions": 200}, {"pos_att_type": "p2c|c2p"}, {"hidden_act": "relu"},
    {"type_vocab_size": 2}, {"tie_word_embeddings": False}, {"layer_norm_eps": 0.1}, {"legacy": False},
], ids=str)  # fmt: skip
def test_an_imported_model_gives_the_same_vectors_and_token_scores(tmp_path, changes, texts):
    network = deberta(**changes)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments="type_vocab_size" in changes)
    assert_same_vectors(hidden, theirs, batch)
    tokens = score(model, "tokens", batch, hidden)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.architecture, report.recipe) == ("DebertaForMaskedLM", "deberta")
    assert (report.missing, report.left_over, report.notes) == ((), (), ())
    unread = 0 if changes.get("tie_word_embeddings", True) else 300  # their second bias
    assert report.parameters == network.num_parameters() - unread


@BOTH
def test_an_imported_classifier_gives_the_same_scores(tmp_path, texts):
    network = deberta(hf.DebertaForSequenceClassification, num_labels=3)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, texts)
    torch.testing.assert_close(
        score(model, "label", batch, hidden), run(network, batch, segments=False).logits, **PARITY
    )
    assert (report.architecture, report.missing, report.left_over) == ("DebertaForSequenceClassification", (), ())
    assert (model.recipe.predict["label"].activation, model.recipe.predict["label"].dropout) == ("gelu", 0.2)


def test_a_bare_network_gives_the_same_vectors_and_can_be_pretrained_on(tmp_path):
    network = deberta(hf.DebertaModel)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, TEXTS)
    assert_same_vectors(hidden, run(network, batch, segments=False), batch)
    assert report.left_over == ()
    assert report.missing
    assert all(name.startswith("predict.tokens.") for name in report.missing)
    batch, counts = model.system.hide(batch)
    assert float(counts["tokens"]) > 0
    assert torch.isfinite(model.system.step(batch)[0]["tokens"].total)


@pytest.mark.parametrize("written, reach", [(-1, 96), (0, 96), (7, 7), (200, 200)])
def test_an_import_has_the_reach_of_the_checkpoint_no_positions_and_no_decoder(tmp_path, written, reach):
    backbone = imported(deberta(max_relative_positions=written), tmp_path)[0].recipe.system.backbone
    assert (backbone.attention, backbone.positions, backbone.decoder) == (Disentangled(reach), NoPositions(), None)


def test_positions_of_a_mask_decoder_in_a_file_are_left_over(tmp_path):
    """The released files have them, and transformers ignores them."""
    network = deberta()
    network.deberta.embeddings.position_embeddings = torch.nn.Embedding(96, 16)
    model, report = imported(network, tmp_path)
    assert report.left_over == ("deberta.embeddings.position_embeddings.weight",)
    assert model.recipe.system.backbone.decoder is None


@pytest.mark.parametrize("changes, message", [
    ({"relative_attention": False}, "relative_attention=False.*only do True"),
    ({"relative_attention": None}, "relative_attention=False.*only do True"),  # the file does not say it
    ({"pos_att_type": ["c2p"]}, r"pos_att_type=\['c2p'\].*only do \['c2p', 'p2c'\]"),
    ({"pos_att_type": "p2c"}, r"pos_att_type=\['p2c'\]"),
    ({"pos_att_type": None}, r"pos_att_type=\[\]"),
    ({"position_biased_input": True}, "position_biased_input=True.*only do False"),
    ({"position_biased_input": None}, "position_biased_input=True.*only do False"),
    ({"type_vocab_size": 1}, "type_vocab_size=1"),
    ({"embedding_size": 8}, "embedding_size=8.*only do 16"),
    ({"talking_head": True}, "talking_head=True"),
    ({"legacy": False, "tie_word_embeddings": False}, "tie_word_embeddings=False"),
    ({"max_relative_positions": "many"}, "max_relative_positions must be a whole number"),
], ids=str)  # fmt: skip
def test_a_checkpoint_that_computes_something_else_is_refused_by_name(tmp_path, changes, message):
    folder = folder_of(deberta(), tokenizer("byte"), tmp_path / "hf")
    edit_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_classifier_with_another_activation_is_refused(tmp_path):
    network = deberta(hf.DebertaForSequenceClassification, pooler_hidden_act="tanh")
    with pytest.raises(UserError, match="pooler_hidden_act='tanh'.*only do 'gelu'"):
        imported(network, tmp_path)


@pytest.mark.parametrize(
    "build", [pretrained, lambda path: classifier("deberta", path)], ids=["pretrained", "classifier"]
)
def test_the_mask_decoder_and_the_head_that_reads_it_are_left_out_and_named(tmp_path, build):
    model = build(tmp_path)
    made = export_hf(model, tmp_path / "hf")
    tokens = [name for name in model.recipe.predict if name == "tokens"]
    assert made.left_out == (*tokens, DECODER)
    network = opened_by_auto(made.architecture, tmp_path / "hf")
    assert made.architecture == ("DebertaModel" if tokens else "DebertaForSequenceClassification")
    ours = {
        name: p
        for name, p in model.system.named_parameters()
        if not name.startswith(("predict.tokens", "backbone.decoder"))
    }
    assert network.num_parameters() == sum(parameter.numel() for parameter in ours.values())


@pytest.mark.parametrize("settings", [
    (), ("system.backbone.attention.reach=5",), ("system.backbone.segments=2",), ("predict.tokens.tied=false",),
], ids=str)  # fmt: skip
def test_without_a_mask_decoder_a_model_goes_out_and_in_again(tmp_path, settings):
    model = pretrained(tmp_path, "system.backbone.decoder=none", *settings)
    save_run(model, tmp_path / "a")
    made = export_hf(model, tmp_path / "hf")
    assert (made.architecture, made.left_out) == ("DebertaForMaskedLM", ())
    assert_same_numbers(model, tmp_path / "hf", opened_by_auto(made.architecture, tmp_path / "hf"), made.left_out)
    report = import_hf(tmp_path / "hf", tmp_path / "b")
    assert (report.missing, report.left_over, report.notes) == ((), (), ())
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    one, other = (json.loads((tmp_path / name / "recipe.json").read_text()) for name in ("a", "b"))
    for key in ("layout", "predict", "see", "arrange", "hide", "system"):
        assert one[key] == other[key], key


def test_a_classifier_without_a_mask_decoder_goes_out_and_in_again(tmp_path):
    recipe = classifier("deberta", tmp_path).recipe
    bare = recipe.replace(system=pretrained(tmp_path, "system.backbone.decoder=none").recipe.system)
    model = model_of(bare, tokenizer("byte"), tmp_path)
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "hf")
    import_hf(tmp_path / "hf", tmp_path / "b")
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name, settings, message", [
    ("deberta", ["system.backbone.positions=Learned"], "got system.backbone.positions=Learned: train with .*=NoPositions"),
    ("deberta", ["system.backbone.attention=Full"], "got system.backbone.attention=Full: train with .*=Disentangled"),
    ("deberta", ["system.backbone.embedding=8"], "system.backbone.embedding=8 and width=16"),
    ("deberta", ["system.backbone.sharing=all"], "system.backbone.sharing=all: train with system.backbone.sharing=none"),
    ("bert", [DECODER], f"got system.backbone.attention=Full.*because of {DECODER}"),
    ("gpt2", ["system.backbone.attention=Disentangled"], r"cannot hold system.backbone.attention=Disentangled\(reach=512\)"),
])  # fmt: skip
def test_what_transformers_cannot_express_is_refused_by_name(name, settings, message):
    with pytest.raises(UserError, match=message):
        architecture_of(recipe_of(name, *settings))
