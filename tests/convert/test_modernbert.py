"""ModernBERT in and out of transformers: what is special about it; every recipe's own tests are in test_recipes.py."""

import json

import pytest
import torch
import transformers as hf

import unmask
from tests.convert.in_transformers import assert_same_numbers, classifier, opened_by_auto
from tests.convert.parts import (
    PAIRS,
    PARITY,
    SENTENCES,
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
)
from tests.small import random_batch
from unmask import text
from unmask.backbone import Local, Rotary
from unmask.convert import architecture_of, export_hf, import_hf
from unmask.errors import UserError
from unmask.infer.model import open_run
from unmask.tasks import Classify

LOCAL = {"local_attention": 8}  # the texts have up to 60 tokens
BOTH = pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])


def modernbert(head=hf.ModernBertForMaskedLM, **changes):
    usual = {
        "hidden_size": 16, "num_hidden_layers": 5, "num_attention_heads": 2, "intermediate_size": 24, "pad_token_id": 1,
        "max_position_embeddings": 96, "classifier_dropout": 0.2, "cls_token_id": 0, "sep_token_id": 2, "bos_token_id": 0,
        "eos_token_id": 2,
    }  # fmt: skip
    return shaken(head(hf.ModernBertConfig(vocab_size=300, **(usual | LOCAL | changes))))


def bert_names():
    """A small tokenizer with the special tokens of ModernBERT's own."""
    return text.train(text.ByteBPE(vocab=300, names="bert"), SENTENCES * 3)


def imported(network, path, tokens=None):
    report = import_hf(folder_of(network, tokens or tokenizer("byte"), path / "hf"), path / "run")
    return open_run(path / "run", device="cpu"), report


def pretrained(path, *settings):
    return model_of(recipe_of("modernbert", *settings), tokenizer("byte"), path)


@BOTH
@pytest.mark.parametrize("changes", [
    {}, {"local_attention": 128}, {"local_attention": 9}, {"global_attn_every_n_layers": 2},
    {"layer_types": ["full_attention"] * 5}, {"hidden_activation": "relu"}, {"tie_word_embeddings": False}, {"norm_eps": 0.1},
    {"rope_parameters": {"full_attention": {"rope_theta": 50.0}, "sliding_attention": {"rope_theta": 7.0}}},
], ids=str)  # fmt: skip
def test_an_imported_model_gives_the_same_vectors_and_token_scores(tmp_path, changes, texts):
    network = modernbert(**changes)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=False)
    assert_same_vectors(hidden, theirs, batch)
    torch.testing.assert_close(score(model, "tokens", batch, hidden)[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.architecture, report.recipe) == ("ModernBertForMaskedLM", "modernbert")
    assert (report.missing, report.left_over, report.notes) == ((), (), ())
    assert report.parameters == network.num_parameters()


def test_the_window_of_these_tests_matters(tmp_path):
    """If it did not, the tests above would prove nothing about it."""
    (narrow, _), (wide, _) = (imported(modernbert(local_attention=n), tmp_path / str(n)) for n in (8, 128))
    batch, one = look(narrow, TEXTS)
    assert int(batch.real.sum(1).max()) > 3 * 8
    assert (one.last - look(wide, TEXTS)[1].last)[batch.real].abs().max() > 0.1


def test_a_packed_example_gets_what_transformers_gives_it_alone(tmp_path):
    network = modernbert(local_attention=4)
    model, _ = imported(network, tmp_path)
    batch = random_batch(rows=2, length=60, examples=3, size=300)
    with torch.no_grad():
        found = model.system.look(batch).layers
        for row, number in ((row, number) for row in range(2) for number in range(3)):
            here = batch.example[row] == number
            expected = network.model(batch.ids[row][here][None], output_hidden_states=True).hidden_states
            for mine, other in zip(found, expected, strict=True):
                torch.testing.assert_close(mine[row][here], other[0], **PARITY)


@BOTH
@pytest.mark.parametrize("pooling, pool", [("cls", "summary"), ("mean", "mean")])
def test_an_imported_classifier_gives_the_same_scores(tmp_path, texts, pooling, pool):
    network = modernbert(hf.ModernBertForSequenceClassification, num_labels=3, classifier_pooling=pooling)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=False).logits
    torch.testing.assert_close(score(model, "label", batch, hidden), theirs, **PARITY)
    assert (report.architecture, report.missing, report.left_over) == ("ModernBertForSequenceClassification", (), ())
    label = model.recipe.predict["label"]
    assert (label.pool, label.dropout, label.pooler_bias, label.pooler_norm) == (pool, 0.2, False, 1e-5)


@pytest.mark.parametrize("pool", ["summary", "mean"])
def test_a_classifier_goes_out_with_what_it_reads(tmp_path, pool):
    model = classifier("modernbert", tmp_path, pool=pool)
    made = export_hf(model, tmp_path / "hf")
    network = opened_by_auto(made.architecture, tmp_path / "hf")
    assert network.config.classifier_pooling == {"summary": "cls", "mean": "mean"}[pool]
    assert_same_numbers(model, tmp_path / "hf", network, made.left_out)


@pytest.mark.parametrize("values", [{}, {"pool": "mean", "pooler": True}], ids=str)
def test_an_adapted_run_has_the_head_that_transformers_has(tmp_path, values):
    adapted = Classify(labels=("bad", "good"), length=32, **values).recipe(pretrained(tmp_path))
    assert architecture_of(adapted).name == "ModernBertForSequenceClassification"
    assert adapted.predict["label"].pooler_norm == adapted.system.backbone.epsilon


def test_a_file_of_the_released_form_is_read(tmp_path):
    """The released config.json has no layer_types and no rope_parameters, but the values that they were made from."""
    network = modernbert(global_attn_every_n_layers=2, global_rope_theta=900.0, local_rope_theta=40.0)
    folder = folder_of(network, bert_names(), tmp_path / "hf")
    edit_json(
        folder / "config.json", layer_types=None, rope_parameters=None, global_attn_every_n_layers=2,
        global_rope_theta=900.0, local_rope_theta=40.0,
    )  # fmt: skip
    import_hf(folder, tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    backbone = model.recipe.system.backbone
    assert (backbone.positions, backbone.local) == (Rotary(900.0, 40.0), Local(8, every=2))
    assert (model.recipe.tokenizer.names, model.recipe.layout) == ("bert", "[CLS] a [SEP] b [SEP]")
    batch, hidden = look(model, TEXTS)
    assert_same_vectors(hidden, run(network, batch, segments=False), batch)


@pytest.mark.parametrize("settings", [
    (), ("system.backbone.local.window=4",), ("system.backbone.local.every=2", "system.backbone.layers=5"),
    ("system.backbone.local=none", "system.backbone.positions.local_theta=none"),
    ("system.backbone.positions.local_theta=none",), ("system.backbone.positions.theta=77",), ("predict.tokens.tied=false",),
], ids=str)  # fmt: skip
def test_a_changed_network_is_the_same_in_transformers(tmp_path, settings):
    model = pretrained(tmp_path, *settings)
    made = export_hf(model, tmp_path / "hf")
    assert (made.architecture, made.left_out) == ("ModernBertForMaskedLM", ())
    assert_same_numbers(model, tmp_path / "hf", opened_by_auto(made.architecture, tmp_path / "hf"), made.left_out)
    said = json.loads((tmp_path / "hf" / "config.json").read_text())
    edit_json(tmp_path / "hf" / "config.json", layer_types=None, rope_parameters=None)  # as older versions read it
    older = hf.AutoConfig.from_pretrained(tmp_path / "hf")
    assert (older.layer_types, older.rope_parameters) == (said["layer_types"], said["rope_parameters"])


@pytest.mark.parametrize("changes, message", [
    ({"norm_bias": True}, "norm_bias=True.*only do False"),
    ({"attention_bias": True}, "attention_bias=True.*only do False"),
    ({"mlp_bias": True}, "mlp_bias=True.*only do False"),
    ({"decoder_bias": False}, "decoder_bias=False.*only do True"),
    ({"classifier_bias": True}, "classifier_bias=True.*only do False"),
    ({"classifier_activation": "relu"}, "classifier_activation='relu'.*only do 'gelu'"),
    ({"layer_types": ["sliding_attention"] * 5}, "layer_types=.*only have full_attention in the first"),
    ({"layer_types": "many"}, "layer_types must be a list"),
    ({"local_attention": 1}, "local_attention=1, 2 or more"),
    ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type': 'yarn'.*only do rope_type='default'"),
    ({"rope_scaling": {"factor": 2.0}}, "rope_scaling="),
], ids=str)  # fmt: skip
def test_a_checkpoint_that_computes_something_else_is_refused_by_name(tmp_path, changes, message):
    folder = folder_of(modernbert(), tokenizer("byte"), tmp_path / "hf")
    edit_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


ROTARY = "system.backbone.positions=Rotary"
GATED = "system.backbone.gated=true"


@pytest.mark.parametrize("name, settings, message", [
    ("modernbert", ["system.backbone.biases=true"], "got system.backbone.biases=true: train with .*biases=false"),
    ("modernbert", ["system.backbone.first_norm=true"], "got system.backbone.first_norm=true"),
    ("modernbert", ["system.backbone.embedding_norm=false"], "embedding_norm=False: train with .*embedding_norm=true"),
    ("modernbert", ["system.backbone.gated=false"], "no architecture of Hugging Face has .*gated=False"),
    ("modernbert", ["system.backbone.norm=post", "system.backbone.first_norm=true"], "cannot hold .*positions=Rotary"),
    ("modernbert", ["system.backbone.positions=Learned"], "positions=Learned: train with .*=Rotary"),
    ("modernbert", ["predict.tokens.transform_bias=true"], "transform_bias=false, got true"),
    ("modernbert", ["predict.tokens.epsilon=0.1"], "epsilon=1e-05, got .* 0.1"),
    ("bert", [ROTARY], r"cannot hold system.backbone.positions=Rotary\(theta=10000.0"),
    ("gpt2", [ROTARY], r"gpt2 cannot hold system.backbone.positions=Rotary\(theta=10000.0"),
    ("roberta", ["system.backbone.local=Local"], r"cannot hold system.backbone.local=Local\(window=128"),
    ("bert", [GATED], "bert has gated=false, got system.backbone.gated=true"),
    ("gpt2", [GATED], "gpt2 has gated=false, got system.backbone.gated=true"),
    ("electra", ["system.backbone.biases=false"], "electra has biases=true, got system.backbone.biases=false"),
    ("gpt2", ["system.backbone.first_norm=false"], "gpt2 has first_norm=true, got system.backbone.first_norm=false"),
    ("bert", ["predict.tokens.transform_bias=false"], "transform_bias=true, got false"),
])  # fmt: skip
def test_what_transformers_cannot_express_is_refused_by_name(name, settings, message):
    with pytest.raises(UserError, match=message):
        architecture_of(recipe_of(name, *settings))


def test_a_label_with_another_pooler_is_refused(tmp_path):
    with pytest.raises(
        UserError, match="pooler_bias=false and pooler_norm=1e-05 .the epsilon of its norms., got true and none"
    ):
        architecture_of(classifier("modernbert", tmp_path, pooler_bias=True, pooler_norm=None).recipe)
    with pytest.raises(UserError, match="pooler_bias=true and pooler_norm=none, got true and 0.1"):
        architecture_of(classifier("bert", tmp_path, pooler_norm=0.1).recipe)
    with pytest.raises(UserError, match="got pooler=False"):
        architecture_of(classifier("modernbert", tmp_path, pooler=False, activation="tanh", pooler_bias=True,
                                   pooler_norm=None).recipe)  # fmt: skip


def test_an_imported_model_goes_on_with_plain_text(tmp_path):
    """What a user does with a released model: import it, prepare text with its tokenizer, pretrain from it."""
    imported(modernbert(), tmp_path, bert_names())
    (tmp_path / "text.txt").write_text("\n\n".join(" ".join(SENTENCES) for _ in range(60)))
    unmask.prepare(tmp_path / "text.txt", tmp_path / "data", tokenizer=tmp_path / "run", progress=False)
    settings = ["schedule.*.rows=2", "schedule.*.length=64"]
    model = unmask.pretrain(
        "modernbert", tmp_path / "data", tmp_path / "on", start=tmp_path / "run", budget="2steps", settings=settings,
        progress=False,
    )  # fmt: skip
    before, after = (unmask.load(tmp_path / name).recipe.system for name in ("run", "on"))
    assert before == after
    assert model.fill("The cat sat on the [MASK].")
