"""Imported checkpoints compute what transformers computes with them."""

import json

import pytest
import torch
import transformers as hf

from tests.command import works
from tests.convert.parts import (
    PAIRS,
    PARITY,
    TEXTS,
    assert_same_vectors,
    edit_json,
    folder_of,
    look,
    run,
    score,
    shaken,
    tokenizer,
)
from unmask.convert import import_hf
from unmask.errors import UserError
from unmask.infer.model import open_run
from unmask.tasks import Tag

LABELS = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}


def bert(head=hf.BertForPreTraining, **changes):
    shape = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 40}
    config = hf.BertConfig(vocab_size=70, max_position_embeddings=64, **(shape | changes))
    return shaken(head(config))


def roberta(head=hf.RobertaForMaskedLM, **changes):
    config = hf.RobertaConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        pad_token_id=1,
        **({"max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5} | changes),
    )  # fmt: skip
    return shaken(head(config))


def gpt2(head=hf.GPT2LMHeadModel, **changes):
    size = tokenizer("gpt2").vocabulary.size
    end = {"bos_token_id": size - 1, "eos_token_id": size - 1, "pad_token_id": size - 1}
    return shaken(
        head(hf.GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=2, n_head=2, **(end | changes)))
    )


def ernie(head=hf.ErnieForPreTraining, **changes):
    shape = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 40}
    config = hf.ErnieConfig(vocab_size=70, max_position_embeddings=64, **(shape | {"hidden_act": "relu"} | changes))
    return shaken(head(config))


def electra(head=hf.ElectraForPreTraining, **changes):
    shape = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 40}
    lengths = {"embedding_size": 12, "max_position_embeddings": 64}
    return shaken(head(hf.ElectraConfig(vocab_size=70, **(shape | lengths | changes))))


def albert(head=hf.AlbertForPreTraining, **changes):
    shape = {"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 40}
    config = hf.AlbertConfig(vocab_size=50, max_position_embeddings=96, **(shape | {"embedding_size": 12} | changes))
    return shaken(head(config))


def imported(network, kind, path):
    report = import_hf(folder_of(network, tokenizer(kind), path / "hf"), path / "run")
    return open_run(path / "run", device="cpu"), report


@pytest.mark.parametrize("build, kind, architecture, field", [
    (bert, "wordpiece", "BertForPreTraining", "seq_relationship_logits"),
    (ernie, "wordpiece", "ErnieForPreTraining", "seq_relationship_logits"),
    (albert, "unigram", "AlbertForPreTraining", "sop_logits"),
])  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_pretrained_model_gives_the_same_vectors_tokens_and_sentence_scores(
    tmp_path, build, kind, architecture, field, texts
):
    network = build()
    model, report = imported(network, kind, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=True)
    assert_same_vectors(hidden, theirs, batch)
    tokens = score(model, "tokens", batch, hidden)
    torch.testing.assert_close(tokens[batch.real], theirs.prediction_logits[batch.real], **PARITY)
    torch.testing.assert_close(score(model, "sentence", batch, hidden), getattr(theirs, field), **PARITY)
    assert (report.architecture, report.recipe) == (architecture, network.config.model_type)
    assert not report.missing
    assert not report.left_over
    assert report.parameters == network.num_parameters()


@pytest.mark.parametrize("network, kind", [
    (lambda: bert(hf.BertForMaskedLM), "wordpiece"),
    (lambda: bert(hf.BertForMaskedLM, hidden_act="gelu_new", layer_norm_eps=1e-5), "wordpiece"),
    (lambda: bert(hf.BertForMaskedLM, tie_word_embeddings=False), "wordpiece"),
    (lambda: bert(hf.BertForMaskedLM, type_vocab_size=1), "wordpiece"),
    (lambda: bert(hf.BertForMaskedLM, type_vocab_size=6, hidden_act="relu"), "wordpiece"),
    (lambda: ernie(hf.ErnieForMaskedLM), "wordpiece"),
    (lambda: ernie(hf.ErnieForMaskedLM, tie_word_embeddings=False, hidden_act="gelu"), "wordpiece"),
    (lambda: albert(hf.AlbertForMaskedLM), "unigram"),
    (lambda: albert(hf.AlbertForMaskedLM, tie_word_embeddings=False, hidden_act="gelu", layer_norm_eps=1e-5), "unigram"),
    (lambda: albert(hf.AlbertForMaskedLM, type_vocab_size=1), "unigram"),
    (lambda: electra(hf.ElectraForMaskedLM), "wordpiece"),
    (lambda: electra(hf.ElectraForMaskedLM, embedding_size=16, hidden_act="relu"), "wordpiece"),
    (lambda: electra(hf.ElectraForMaskedLM, tie_word_embeddings=False), "wordpiece"),
    (lambda: roberta(), "byte"),
    (lambda: roberta(hidden_act="relu"), "byte"),
    (lambda: roberta(type_vocab_size=2), "byte"),
    (lambda: gpt2(), "gpt2"),
    (lambda: gpt2(n_inner=24, activation_function="gelu_pytorch_tanh"), "gpt2"),
    (lambda: gpt2(tie_word_embeddings=False), "gpt2"),
])  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_language_model_gives_the_same_vectors_and_token_scores(tmp_path, network, kind, texts):
    network = network()
    model, report = imported(network, kind, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=model.recipe.system.backbone.segments > 1)
    assert_same_vectors(hidden, theirs, batch)
    tokens = score(model, "tokens", batch, hidden)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)
    assert not report.missing
    assert not [name for name in report.left_over if "pooler" not in name]


@pytest.mark.parametrize("network, kind", [
    (lambda: bert(hf.BertForSequenceClassification, **LABELS), "wordpiece"),
    (lambda: roberta(hf.RobertaForSequenceClassification, **LABELS), "byte"),
    (lambda: gpt2(hf.GPT2ForSequenceClassification, **LABELS), "gpt2"),
    (lambda: ernie(hf.ErnieForSequenceClassification, **LABELS), "wordpiece"),
    (lambda: electra(hf.ElectraForSequenceClassification, **LABELS), "wordpiece"),
    (lambda: albert(hf.AlbertForSequenceClassification, **LABELS), "unigram"),
])  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_classifier_gives_the_same_scores_and_names_its_classes(tmp_path, network, kind, texts):
    network = network()
    model, report = imported(network, kind, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=model.recipe.system.backbone.segments > 1)
    torch.testing.assert_close(score(model, "label", batch, hidden), theirs.logits, **PARITY)
    assert model.labels == ("bad", "fair", "good")
    assert not report.missing
    assert not report.left_over


@pytest.mark.parametrize("network, kind", [
    (lambda: bert(hf.BertModel), "wordpiece"),
    (lambda: roberta(hf.RobertaModel), "byte"),
    (lambda: gpt2(hf.GPT2Model), "gpt2"),
    (lambda: ernie(hf.ErnieModel), "wordpiece"),
    (lambda: albert(hf.AlbertModel), "unigram"),
])  # fmt: skip
def test_a_bare_network_gives_the_same_vectors_and_can_be_pretrained_on(tmp_path, network, kind):
    network = network()
    model, report = imported(network, kind, tmp_path)
    batch, hidden = look(model, TEXTS)
    assert_same_vectors(hidden, run(network, batch, segments=model.recipe.system.backbone.segments > 1), batch)
    assert all(name.startswith("predict.tokens.") for name in report.missing)
    assert bool(report.missing) == (kind != "gpt2")  # GPT-2's head has no weights of its own
    assert all("pooler" in name for name in report.left_over)
    assert bool(report.left_over) == (kind != "gpt2")
    hidden_batch, counts = model.system.hide(batch)
    assert float(counts["tokens"]) > 0
    assert torch.isfinite(model.system.step(hidden_batch)[0]["tokens"].total)


@pytest.mark.parametrize("network, kind, theirs, layout", [
    (lambda: bert(hf.BertForSequenceClassification), "wordpiece", hf.BertTokenizer, "[CLS] a [SEP] b [SEP]"),
    (lambda: roberta(hf.RobertaForSequenceClassification), "byte", hf.RobertaTokenizer, "[CLS] a [SEP] [SEP] b [SEP]"),
    (lambda: gpt2(hf.GPT2ForSequenceClassification), "gpt2", hf.GPT2Tokenizer, "a b"),
    (lambda: ernie(hf.ErnieForSequenceClassification), "wordpiece", hf.BertTokenizer, "[CLS] a [SEP] b [SEP]"),
    (lambda: electra(hf.ElectraForSequenceClassification), "wordpiece", hf.BertTokenizer, "[CLS] a [SEP] b [SEP]"),
    (lambda: albert(hf.AlbertForSequenceClassification), "unigram", hf.AlbertTokenizer, "[CLS] a [SEP] b [SEP]"),
])  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_folder_written_by_transformers_gives_the_same_scores_from_raw_text(
    tmp_path, network, kind, theirs, layout, texts
):
    network = network()
    network.save_pretrained(tmp_path / "hf")
    known = json.loads(tokenizer(kind).backend.to_str())["model"]
    merges = {"merges": [tuple(merge) for merge in known["merges"]]} if "merges" in known else {}
    scored = [tuple(entry) for entry in known["vocab"]] if kind == "unigram" else None
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]"} if kind == "unigram" else {}
    vocab = scored or tokenizer(kind).backend.get_vocab()
    theirs(vocab=vocab, **merges, **special).save_pretrained(tmp_path / "hf")
    import_hf(tmp_path / "hf", tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    assert model.recipe.layout == layout
    batch, hidden = look(model, texts)
    auto = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    auto.pad_token = auto.pad_token or auto.eos_token
    second = [text.b for text in texts] if texts[0].b else None
    with torch.no_grad():
        encoded = auto([text.a for text in texts], second, padding=True, return_tensors="pt",
                       return_token_type_ids=model.recipe.system.backbone.segments > 1)  # fmt: skip
        logits = network(**encoded).logits
    torch.testing.assert_close(score(model, "label", batch, hidden), logits, **PARITY)


def test_a_language_model_whose_tokenizer_adds_nothing_keeps_the_layout_of_its_recipe(tmp_path):
    assert imported(gpt2(), "gpt2", tmp_path)[0].recipe.layout == "a [SEP] b [SEP]"


def test_the_recipe_has_the_numbers_of_the_checkpoint_and_rows_that_fit_it(tmp_path):
    model, _ = imported(bert(hf.BertForMaskedLM, hidden_dropout_prob=0.2), "wordpiece", tmp_path)
    backbone = model.recipe.system.backbone
    shape = (backbone.layers, backbone.width, backbone.heads, backbone.feedforward, backbone.length, backbone.dropout)
    assert shape == (3, 16, 2, 40, 64, 0.2)
    assert max(stage.length for stage in model.recipe.schedule) == 64
    assert type(model.recipe.arrange).__name__ == "Blocks"
    assert model.recipe.tokenizer.vocab == 70


def test_a_checkpoint_in_half_precision_becomes_float32(tmp_path):
    model, _ = imported(bert().to(torch.bfloat16), "wordpiece", tmp_path)
    assert {parameter.dtype for parameter in model.system.parameters()} == {torch.float32}


def test_rows_that_no_token_has_are_cut_off_and_reported(tmp_path):
    network = bert(hf.BertForMaskedLM)
    network.resize_token_embeddings(72)
    model, report = imported(shaken(network), "wordpiece", tmp_path)
    assert report.left_over == ("bert.embeddings.word_embeddings.weight[70:]", "cls.predictions.bias[70:]")
    batch, hidden = look(model, TEXTS)
    theirs = run(network, batch, segments=True)
    tokens = score(model, "tokens", batch, hidden)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real][:, :70], **PARITY)


@pytest.mark.parametrize("network, kind, fresh", [
    (lambda: bert(hf.BertForTokenClassification), "wordpiece", "predict.tokens.dense.weight"),
    (lambda: albert(hf.AlbertForTokenClassification), "unigram", "predict.tokens.dense.weight"),
    (lambda: electra(hf.ElectraForTokenClassification), "wordpiece", "predict.replaced.dense.weight"),
])  # fmt: skip
@pytest.mark.parametrize("named", [True, False], ids=["architecture named", "architecture not named"])
def test_a_head_for_tags_is_imported_if_its_architecture_is_named_and_left_over_otherwise(
    tmp_path, network, kind, fresh, named
):
    folder = folder_of(network(), tokenizer(kind), tmp_path / "hf")
    if not named:
        edit_json(folder / "config.json", architectures=None)
    report = import_hf(folder, tmp_path / "run")
    if named:  # then it is known to be a head for tags
        assert not report.left_over
        assert not report.missing
        assert open_run(tmp_path / "run", device="cpu").recipe.task == Tag(labels=("LABEL_0", "LABEL_1"), token="first")
    else:
        assert report.left_over == ("classifier.bias", "classifier.weight")
        assert fresh in report.missing


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
@pytest.mark.parametrize("segments", [1, 2])
def test_of_several_tasks_the_first_is_kept_and_the_others_are_left_over(tmp_path, texts, segments):
    network = ernie(use_task_id=True, type_vocab_size=segments)
    model, report = imported(network, "wordpiece", tmp_path)
    batch, hidden = look(model, texts)
    assert_same_vectors(hidden, run(network, batch, segments=segments > 1), batch)
    assert report.left_over == ("ernie.embeddings.task_type_embeddings.weight[1:]",)
    assert not report.missing


def test_an_albert_that_maps_embeddings_of_the_layers_width_is_kept_only_if_the_map_changes_nothing(tmp_path):
    network = albert(embedding_size=16)
    with pytest.raises(UserError, match="maps embeddings of width 16"):
        imported(network, "unigram", tmp_path)
    with torch.no_grad():
        network.albert.encoder.embedding_hidden_mapping_in.weight.copy_(torch.eye(16))
        network.albert.encoder.embedding_hidden_mapping_in.bias.zero_()
    model, report = imported(network, "unigram", tmp_path)
    batch, hidden = look(model, TEXTS)
    assert_same_vectors(hidden, run(network, batch, segments=True), batch)
    assert (report.missing, report.left_over) == ((), ())


def test_a_next_sentence_model_gets_a_fresh_head_for_tokens(tmp_path):
    model, report = imported(bert(hf.BertForNextSentencePrediction), "wordpiece", tmp_path)
    assert set(model.system.predict) == {"tokens", "sentence"}
    assert all(name.startswith("predict.tokens.") for name in report.missing)
    assert report.missing


def test_a_classifier_without_architectures_in_its_config_is_known_by_its_tensors(tmp_path):
    folder = folder_of(bert(hf.BertForSequenceClassification), tokenizer(), tmp_path / "hf")
    edit_json(folder / "config.json", architectures=None)
    assert import_hf(folder, tmp_path / "run").architecture == "BertForSequenceClassification"
    assert json.loads((tmp_path / "run/recipe.json").read_text())["task"]["labels"] == ["LABEL_0", "LABEL_1"]


def test_a_head_that_the_checkpoint_does_not_have_is_said_to_be_random_by_import_and_by_fill(tmp_path):
    bare = folder_of(shaken(hf.BertModel(bert().config)), tokenizer(), tmp_path / "bare")
    imported = works("import", bare, "--out", tmp_path / "run")
    assert "the head 'tokens' has random weights" in imported.out
    said = works("fill", tmp_path / "run", "the [MASK] sat.").err
    assert "tensors of the head 'tokens' have random weights" in said
    assert "--from" in said
    whole = folder_of(bert(), tokenizer(), tmp_path / "whole")
    assert "random" not in works("import", whole, "--out", tmp_path / "other").out
    assert "random" not in works("fill", tmp_path / "other", "the [MASK] sat.").err
