"""Exported models: transformers' Auto classes open them and compute, from raw text, what ours compute."""

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import classifier, from_text, opened
from tests.convert.parts import PAIRS, PARITY, TEXTS, look, model_of, recipe_of, score, tokenizer, tokenizer_for
from unmask.convert import export_hf
from unmask.data import Blocks
from unmask.errors import UserError
from unmask.predict import Label
from unmask.tasks import Write
from unmask.text import Tokenizer


def pretrained(name, folder, *settings, tokens=None, **changes):
    recipe = recipe_of(name, *settings).replace(**changes)
    return model_of(recipe, tokens or tokenizer_for(recipe), folder)


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
def test_a_tokenizer_with_a_single_special_token_gives_the_same_numbers(tmp_path, texts):
    model = pretrained("gpt2", tmp_path, tokens=tokenizer("gpt2"))
    assert_same_from_text(model, tmp_path / "hf", hf.AutoModelForCausalLM, texts, "tokens")
    model = classifier("gpt2", tmp_path, tokenizer("gpt2"))
    assert_same_from_text(model, tmp_path / "label", hf.AutoModelForSequenceClassification, texts, "label")


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
    ("gpt2", ["see=Everything", "hide=Masked", "system.backbone.norm=post", "predict.tokens.transform=true",
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


def test_a_gpt2_classifier_whose_padding_ends_texts_gets_a_padding_of_its_own(tmp_path):
    model = classifier("gpt2", tmp_path, tokenizer("gpt2"))
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
    ("bert", ["system.backbone.positions=Sinusoidal"], "no sinusoidal positions.*positions=Learned"),
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
    adapted = Write().recipe(pretrained(name, tmp_path))
    with pytest.raises(UserError, match="reads one text whole and writes a second"):
        export_hf(model_of(adapted, tokenizer_for(adapted), tmp_path), tmp_path / "hf")


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
