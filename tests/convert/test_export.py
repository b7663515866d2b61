"""Exported models: transformers' Auto classes open them and compute, from raw text, what ours compute."""

import json

import pytest
import torch
import transformers as hf

from tests.convert.parts import PAIRS, PARITY, TEXTS, look, model_of, recipe_of, score, tokenizer, weights
from unmask.convert import export_hf, import_hf
from unmask.data import Blocks, FromTask
from unmask.errors import UserError
from unmask.hide import Nothing
from unmask.infer.model import save_run
from unmask.predict import Label
from unmask.system import Single
from unmask.tasks import Classify
from unmask.text import Tokenizer

KINDS = {
    "bert": "wordpiece", "roberta": "byte", "gpt2": "gpt2", "ernie": "wordpiece", "electra": "wordpiece",
    "albert": "unigram", "gpt": "word",
}  # fmt: skip
SHAPED_LIKE_BERT = ("bert-wwm", "bert-wwm-ext", "spanbert", "structbert", "unilm")


def pretrained(name, folder, *settings, tokens=None, **changes):
    recipe = recipe_of(name, *settings).replace(**changes)
    return model_of(recipe, tokens or tokenizer(KINDS.get(name, "wordpiece")), folder)


def classifier(name, folder, tokens=None, **changes):
    reads_all = name not in ("gpt", "gpt2")
    head = {
        "classes": 3,
        "pooler": reads_all,
        "activation": "gelu" if name == "electra" else "tanh",
        "bias": reads_all,
        "dropout": 0.1,
    } | changes
    recipe = recipe_of(name)
    parts = {
        "arrange": FromTask(),
        "hide": Nothing(),
        "see": recipe.see.serving,
        "system": Single(backbone=recipe.system.backbone),
        "predict": {"label": Label(**head)},
        "task": Classify(labels=("bad", "fair", "good")),
    }
    return pretrained(name, folder, tokens=tokens, **parts)


def opened(auto, folder):
    network, info = auto.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    return network.eval()


def from_text(network, folder, texts):
    """What transformers makes of raw text with what lies in the folder alone."""
    second = [text.b for text in texts] if texts[0].b is not None else None
    encoded = hf.AutoTokenizer.from_pretrained(folder)([t.a for t in texts], second, padding=True, return_tensors="pt")
    with torch.no_grad():
        return network(**encoded, output_hidden_states=True), encoded


def assert_same_from_text(model, folder, auto, texts, head, field="logits"):
    export_hf(model, folder)
    theirs, encoded = from_text(opened(auto, folder), folder, texts)
    batch, hidden = look(model, texts)
    length = encoded["input_ids"].shape[1]
    real = batch.real[:, :length]
    assert torch.equal(encoded["attention_mask"].bool(), real)
    assert not batch.real[:, length:].any()
    assert torch.equal(encoded["input_ids"][real], batch.ids[:, :length][real])
    for mine, other in zip(hidden.layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(mine[:, :length][real], other[real], **PARITY)
    mine, other = score(model, head, batch, hidden), getattr(theirs, field)
    per_token = mine.shape[:2] == batch.shape
    same_places = (mine[:, :length][real], other[real]) if per_token else (mine, other)
    torch.testing.assert_close(*same_places, **PARITY)


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
@pytest.mark.parametrize("name, auto, head, field", [
    ("bert", hf.AutoModelForPreTraining, "tokens", "prediction_logits"),
    ("bert", hf.AutoModelForPreTraining, "sentence", "seq_relationship_logits"),
    ("roberta", hf.AutoModelForMaskedLM, "tokens", "logits"),
    ("gpt2", hf.AutoModelForCausalLM, "tokens", "logits"),
    ("gpt", hf.AutoModelForCausalLM, "tokens", "logits"),
    ("ernie", hf.AutoModelForPreTraining, "tokens", "prediction_logits"),
    ("ernie", hf.AutoModelForPreTraining, "sentence", "seq_relationship_logits"),
    ("albert", hf.AutoModelForPreTraining, "tokens", "prediction_logits"),
    ("albert", hf.AutoModelForPreTraining, "sentence", "sop_logits"),
    ("electra", hf.AutoModelForPreTraining, "replaced", "logits"),
    ("bert-wwm", hf.AutoModelForPreTraining, "sentence", "seq_relationship_logits"),
    ("bert-wwm-ext", hf.AutoModelForPreTraining, "tokens", "prediction_logits"),
    ("unilm", hf.AutoModelForPreTraining, "tokens", "prediction_logits"),
    ("unilm", hf.AutoModelForPreTraining, "sentence", "seq_relationship_logits"),
    ("spanbert", hf.AutoModelForMaskedLM, "tokens", "logits"),
    ("structbert", hf.AutoModelForMaskedLM, "tokens", "logits"),
])  # fmt: skip
def test_a_pretrained_model_is_the_same_in_transformers_from_raw_text(tmp_path, texts, name, auto, head, field):
    assert_same_from_text(pretrained(name, tmp_path), tmp_path / "hf", auto, texts, head, field)


@pytest.mark.parametrize("name", KINDS)
def test_attention_dropout_is_written_where_the_architecture_has_it(tmp_path, name):
    theirs = "attn_pdrop" if name in ("gpt", "gpt2") else "attention_probs_dropout_prob"
    for share in (0.0, 0.1):
        model = pretrained(name, tmp_path / f"{share}", f"system.backbone.attention_dropout={share}")
        export_hf(model, tmp_path / f"hf{share}")
        assert getattr(hf.AutoConfig.from_pretrained(tmp_path / f"hf{share}"), theirs) == share


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
@pytest.mark.parametrize("name", [*KINDS, *SHAPED_LIKE_BERT])
def test_a_classifier_is_the_same_in_transformers_from_raw_text(tmp_path, texts, name):
    model = classifier(name, tmp_path)
    assert_same_from_text(model, tmp_path / "hf", hf.AutoModelForSequenceClassification, texts, "label")
    config = hf.AutoConfig.from_pretrained(tmp_path / "hf")
    assert config.id2label == {0: "bad", 1: "fair", 2: "good"}
    assert config.label2id["good"] == 2


@pytest.mark.parametrize("name, architecture, left_out", [
    ("bert-wwm", "BertForPreTraining", ()),
    ("bert-wwm-ext", "BertForPreTraining", ()),
    ("unilm", "BertForPreTraining", ()),
    ("spanbert", "BertForMaskedLM", ("boundary",)),
    ("structbert", "BertForMaskedLM", ("sentence",)),
    ("albert", "AlbertForPreTraining", ()),
    ("electra", "ElectraForPreTraining", ("generator",)),
    ("ernie", "ErnieForPreTraining", ()),
])  # fmt: skip
def test_what_the_architecture_has_no_place_for_is_left_out_and_named(tmp_path, name, architecture, left_out):
    made = export_hf(pretrained(name, tmp_path), tmp_path / "hf")
    assert (made.architecture, made.left_out) == (architecture, left_out)
    assert hf.AutoConfig.from_pretrained(tmp_path / "hf").architectures == [architecture]


@pytest.mark.parametrize("name, segments", [("unilm", 6), ("spanbert", 1), ("structbert", 2)])
def test_segments_are_those_of_the_recipe(tmp_path, name, segments):
    export_hf(pretrained(name, tmp_path), tmp_path / "hf")
    assert hf.AutoConfig.from_pretrained(tmp_path / "hf").type_vocab_size == segments


@pytest.mark.parametrize("name, settings, tokens", [
    ("bert", ["arrange=Blocks", "predict.tokens.tied=false"], "wordpiece"),
    ("bert", ["arrange=Blocks", "predict.tokens.bias=false"], "wordpiece"),
    ("bert", ["arrange=Blocks", "system.backbone.activation=gelu_tanh", "predict.tokens.activation=gelu_tanh"], "byte"),
    ("roberta", ["system.backbone.activation=relu"], "wordpiece"),  # [PAD] is token 0: another offset of positions
    ("roberta", ["system.backbone.segments=2"], "byte"),
    ("gpt2", ["predict.tokens.tied=false"], "byte"),
    ("gpt2", ["see=Everything", "hide=Mask", "system.backbone.norm=post", "predict.tokens.transform=true",
              "predict.tokens.bias=true", "predict.tokens.epsilon=1e-5", "system.backbone.activation=gelu"],
     "wordpiece"),
    ("roberta", ["system.backbone.sharing=all", "system.backbone.embedding=8"], "byte"),  # becomes albert
    ("roberta", ["system.backbone.sharing=all"], "byte"),
    ("roberta", ["system.backbone.embedding=8"], "byte"),  # becomes electra
    ("albert", ["arrange=Blocks", "predict.tokens.tied=false"], "unigram"),
    ("ernie", ["arrange=Blocks", "predict.tokens.tied=false"], "wordpiece"),
])  # fmt: skip
def test_the_family_follows_from_the_parts_and_not_from_the_name(tmp_path, name, settings, tokens):
    model = pretrained(name, tmp_path, *settings, tokens=tokenizer(tokens))
    auto = hf.AutoModelForCausalLM if model.recipe.see.pattern == "left" else hf.AutoModelForMaskedLM
    assert_same_from_text(model, tmp_path / "hf", auto, PAIRS, "tokens")


def test_a_sentence_task_without_segments_becomes_bert(tmp_path):
    model = pretrained("bert", tmp_path, "system.backbone.segments=0")
    assert_same_from_text(
        model, tmp_path / "hf", hf.AutoModelForPreTraining, PAIRS, "sentence", "seq_relationship_logits"
    )


@pytest.mark.parametrize("name", KINDS)
def test_the_bare_network_opens_with_auto_model(tmp_path, name):
    model = pretrained(name, tmp_path)
    assert sorted(export_hf(model, tmp_path / "hf").files) == sorted(path.name for path in (tmp_path / "hf").iterdir())
    theirs, encoded = from_text(hf.AutoModel.from_pretrained(tmp_path / "hf").eval(), tmp_path / "hf", TEXTS)
    _, hidden = look(model, TEXTS)
    real = encoded["attention_mask"].bool()
    torch.testing.assert_close(hidden.last[:, : real.shape[1]][real], theirs.last_hidden_state[real], **PARITY)


@pytest.mark.parametrize(
    "build, name",
    [(pretrained, name) for name in KINDS if name != "electra"] + [(classifier, name) for name in KINDS],
)
def test_import_of_an_export_has_identical_weights_and_recipe_parts(tmp_path, build, name):
    model = build(name, tmp_path, tokens=tokenizer("byte" if name == "gpt2" else KINDS[name]))
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "hf")
    report = import_hf(tmp_path / "hf", tmp_path / "b")
    assert not report.missing
    assert not report.left_over
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    one, other = (json.loads((tmp_path / run / "recipe.json").read_text()) for run in ("a", "b"))
    assert {key: (one[key], other[key]) for key in ("layout", "predict", "see", "arrange", "hide", "system")
            if one[key] != other[key]} == {}  # fmt: skip


def test_a_gpt2_classifier_whose_padding_ends_texts_gets_a_padding_of_its_own(tmp_path):
    model = classifier("gpt2", tmp_path)
    export_hf(model, tmp_path / "hf")
    config = hf.AutoConfig.from_pretrained(tmp_path / "hf")
    assert config.vocab_size == model.tokenizer.vocabulary.size + 1
    assert (
        hf.AutoTokenizer.from_pretrained(tmp_path / "hf").pad_token_id == config.pad_token_id == config.vocab_size - 1
    )
    assert model.tokenizer.backend.token_to_id("[PAD]") is None, "the model itself must stay as it was"


@pytest.mark.parametrize("name, mask", [
    ("bert", "[MASK]"), ("roberta", "<mask>"), ("electra", "[MASK]"), ("albert", "[MASK]"),
])  # fmt: skip
def test_the_exported_tokenizer_knows_its_special_tokens_and_the_longest_text(tmp_path, name, mask):
    model = pretrained(name, tmp_path)
    export_hf(model, tmp_path / "hf")
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert theirs.model_max_length == model.length
    assert theirs.mask_token == mask
    assert theirs.mask_token_id == model.tokenizer.vocabulary.mask
    text = f"The cat {mask} on the mat."
    assert theirs(text, add_special_tokens=False)["input_ids"] == model.tokenizer.encode(text)
    assert len(theirs("the cat " * 60, truncation=True)["input_ids"]) == model.length
    theirs.save_pretrained(tmp_path / "again")
    assert Tokenizer.load(tmp_path / "again").encode(text) == model.tokenizer.encode(text)


def test_a_fill_mask_pipeline_finds_what_ours_finds(tmp_path):
    model = pretrained("roberta", tmp_path)
    export_hf(model, tmp_path / "hf")
    best = hf.pipeline("fill-mask", model=str(tmp_path / "hf"))("The cat <mask> on the mat.")[0]["token"]
    batch, hidden = look(model, [type(TEXTS[0])("The cat <mask> on the mat.")])
    assert best == int(score(model, "tokens", batch, hidden)[batch.ids == model.tokenizer.vocabulary.mask].argmax())


@pytest.mark.parametrize("name, settings, message", [
    ("bert", ["system.backbone.positions=sinusoidal"], "no sinusoidal positions.*learned"),
    ("bert", ["system.backbone.norm=pre"], "norm='pre'"),
    ("bert", ["predict.tokens.transform=false"], "with a transform"),
    ("bert", ["predict.tokens.epsilon=0.1"], "epsilon"),
    ("roberta", ["predict.tokens.activation=gelu_tanh"], "gelu_tanh"),
    ("gpt2", ["system.backbone.segments=2"], "no segments, got 2"),
    ("gpt2", ["predict.tokens.bias=true"], "without a transform and a bias"),
    ("gpt2", ["system.backbone.embedding_norm=true"], "no norm on its embeddings"),
    ("bert", ["system.backbone.embedding_norm=false"], "a norm on its embeddings"),
    ("gpt", ["system.backbone.embedding_norm=none"], "no norm on its embeddings"),
    ("gpt", ["system.backbone.activation=gelu"], "activations gelu_tanh, relu, got system.backbone.activation=gelu"),
    ("gpt", ["system.backbone.feedforward=24"], "train with system.backbone.feedforward=64"),
    ("albert", ["system.backbone.sharing=attention"], "sharing=attention: train with system.backbone.sharing=all"),
    ("albert", ["system.backbone.sharing=none"], "sharing=none: train with system.backbone.sharing=all"),
    ("bert", ["system.backbone.sharing=feedforward"], "train with system.backbone.sharing=none"),
    ("ernie", ["system.backbone.embedding=8"], "embedding=8 and width=16"),
    ("ernie", ["system.backbone.activation=gelu"], "activation='gelu'"),
    ("electra", ["system.backbone.activation=relu"], "activation=gelu"),
])  # fmt: skip
def test_what_transformers_cannot_express_is_refused_with_the_reason(tmp_path, name, settings, message):
    with pytest.raises(UserError, match=message):
        export_hf(pretrained(name, tmp_path, *settings), tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


@pytest.mark.parametrize("name, changes, message", [
    ("bert", {"pool": "mean", "pooler": False}, "pool='mean'.*pool=summary"),
    ("bert", {"pooler": False}, "with a pooler"),
    ("gpt2", {"bias": True}, "without a pooler or a bias"),
    ("bert", {"activation": "gelu"}, "--set activation=tanh"),
    ("electra", {"activation": "tanh"}, "--set activation=gelu"),
])  # fmt: skip
def test_a_head_that_transformers_does_not_have_is_refused(tmp_path, name, changes, message):
    with pytest.raises(UserError, match=message):
        export_hf(classifier(name, tmp_path, **changes), tmp_path / "hf")


@pytest.mark.parametrize("name", ["unilm", "bert"])
def test_a_model_that_was_adapted_to_write_a_second_text_is_refused(tmp_path, name):
    see = recipe_of(name).see.writing
    with pytest.raises(UserError, match="reads one text whole and writes a second"):
        export_hf(pretrained(name, tmp_path, see=see), tmp_path / "hf")


def test_a_model_with_tokens_and_a_label_is_refused(tmp_path):
    recipe = recipe_of("bert").replace(arrange=Blocks())
    recipe = recipe.replace(predict=recipe.predict | {"label": Label()})
    with pytest.raises(UserError, match="got tokens, label"):
        export_hf(model_of(recipe, tokenizer(), tmp_path), tmp_path / "hf")


def test_an_adapter_inside_the_network_is_refused(tmp_path):
    model = pretrained("bert", tmp_path)
    model.system.backbone.blocks[0].after_mlp = torch.nn.Linear(16, 16)
    with pytest.raises(UserError, match="no place for backbone.blocks.0.after_mlp"):
        export_hf(model, tmp_path / "hf")


def test_an_existing_folder_is_not_overwritten_unless_asked(tmp_path):
    model = pretrained("bert", tmp_path)
    export_hf(model, tmp_path / "hf")
    with pytest.raises(UserError, match="exists already"):
        export_hf(model, tmp_path / "hf")
    export_hf(model, tmp_path / "hf", overwrite=True)
