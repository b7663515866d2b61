"""XLNet both ways: the content stream from raw text, both streams in pretraining, and classifiers, as in transformers."""

import json

import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer as Backend

from tests.backbone.test_relative import masks_of, permuted
from tests.convert.in_transformers import from_text, opened
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
from unmask.backbone import TransformerXL
from unmask.convert import export_hf, import_hf
from unmask.data import FromTask
from unmask.errors import UserError
from unmask.hide import Nothing
from unmask.infer.model import open_run, save_run
from unmask.predict import Label
from unmask.tasks import Classify
from unmask.text import Tokenizer, Unigram

XLNET_NAMES = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
SPECIAL = {"cls": "<cls>", "sep": "<sep>", "pad": "<pad>", "mask": "<mask>", "unk": "<unk>"}


def theirs_of() -> hf.XLNetTokenizer:
    """transformers' own tokenizer of XLNet with a small vocabulary."""
    pieces = [
        piece for piece in json.loads(tokenizer("unigram").backend.to_str())["model"]["vocab"] if piece[0][0] != "["
    ]
    return hf.XLNetTokenizer(vocab=[*((name, 0.0) for name in XLNET_NAMES), *map(tuple, pieces)])


def like_theirs() -> Tokenizer:
    return Tokenizer(Backend.from_str(theirs_of().backend_tokenizer.to_str()))


SIZE = like_theirs().vocabulary.size


def xlnet(head=hf.XLNetLMHeadModel, **changes):
    shape = {"vocab_size": SIZE, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24}
    return shaken(head(hf.XLNetConfig(**(shape | changes))))


def imported(network, path):
    report = import_hf(folder_of(network, like_theirs(), path / "hf"), path / "run")
    return open_run(path / "run", device="cpu"), report


def pretrained(path, *settings, tokens=None, **changes):
    shape = ["system.backbone.head=8", "system.backbone.memory=12", "system.backbone.length=96"]
    recipe = recipe_of("xlnet", *shape, *settings).replace(**changes)
    return model_of(recipe, tokens or tokenizer("unigram"), path)


def classifier(path, tokens=None, **changes):
    label = Label(**{"classes": 3, "dropout": 0.2} | changes)
    see = recipe_of("xlnet").see.reading
    return pretrained(path, tokens=tokens, arrange=FromTask(), hide=Nothing(), see=see, predict={"label": label},
                      task=Classify(labels=("bad", "fair", "good")))  # fmt: skip


@pytest.mark.parametrize("changes", [
    {}, {"ff_activation": "relu"}, {"tie_word_embeddings": False}, {"layer_norm_eps": 0.1}, {"clamp_len": 5},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_an_imported_model_gives_the_same_vectors_and_token_scores(tmp_path, changes, texts):
    network = xlnet(**changes)
    model, report = imported(network, tmp_path)
    batch, hidden = look(model, texts)
    theirs = run(network, batch, segments=True)
    assert_same_vectors(hidden, theirs, batch)
    tokens = score(model, "tokens", batch, hidden)
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.architecture, report.recipe, report.left_over, report.missing) == (
        "XLNetLMHeadModel", "xlnet", (), (),
    )  # fmt: skip


def test_a_text_is_laid_out_and_numbered_as_transformers_does(tmp_path):
    model, _ = imported(xlnet(), tmp_path)
    assert model.recipe.layout == "a [SEP] b [SEP] [CLS]"
    assert model.recipe.tokenizer == Unigram(vocab=SIZE)
    assert {role: model.tokenizer.token(index) for role, index in model.tokenizer.roles.items()} == SPECIAL
    theirs = theirs_of()
    for texts in (TEXTS, PAIRS):
        batch, _ = look(model, texts)
        for row, text in enumerate(texts):
            expected = theirs(text.a, text.b, return_token_type_ids=True)
            real = batch.real[row]
            assert batch.ids[row][real].tolist() == expected["input_ids"]
            assert batch.segment[row][real].tolist() == expected["token_type_ids"]


@pytest.mark.parametrize("head", [hf.XLNetLMHeadModel, hf.XLNetModel])
def test_the_query_stream_of_pretraining_is_the_same_given_the_order_and_the_targets(tmp_path, head):
    network = xlnet(head)
    model, _ = imported(network, tmp_path)
    batch, _ = look(model, PAIRS)
    batch, _ = model.system.hide(batch)
    blocked, chosen = masks_of(batch)
    used = batch.targets["tokens"].weight > 0
    assert used.any()
    with torch.no_grad():
        expected = network(
            batch.ids, attention_mask=batch.real.long(), perm_mask=blocked, target_mapping=chosen,
            token_type_ids=batch.segment,
        )  # fmt: skip
        hidden, _ = model.system.backbone(batch)
        scores = model.system.predict["tokens"].at_targets(hidden, batch)
    found, wanted = (hidden.query, expected.last_hidden_state) if head is hf.XLNetModel else (scores, expected.logits)
    torch.testing.assert_close(found[used], wanted.flatten(0, 1)[used], **PARITY)


@pytest.mark.parametrize("length", [15, 23])
def test_rows_of_odd_length_that_their_collator_refuses_are_hidden_ordered_and_computed_alike(tmp_path, length):
    collator = hf.DataCollatorForPermutationLanguageModeling(theirs_of())
    with pytest.raises(ValueError, match="lengths be even"):
        collator([{"input_ids": list(range(9, 9 + length))}])
    assert collator([{"input_ids": list(range(9, 10 + length))}])["perm_mask"].shape == (1, length + 1, length + 1)
    batch = permuted(rows=4, length=length)
    used = batch.targets["tokens"].weight > 0
    assert 4 <= int(used.sum()) <= 4 * -(-length // 6)
    assert sorted(batch.order[0].tolist()) == list(range(length))
    blocked, chosen = masks_of(batch)
    network = xlnet(hf.XLNetModel)
    model, _ = imported(network, tmp_path)
    with torch.no_grad():
        expected = network(batch.ids, perm_mask=blocked, target_mapping=chosen, token_type_ids=batch.segment)
        found, _ = model.system.backbone(batch)
    torch.testing.assert_close(found.query[used], expected.last_hidden_state.flatten(0, 1)[used], **PARITY)


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_an_imported_classifier_gives_the_same_scores(tmp_path, texts):
    network = xlnet(hf.XLNetForSequenceClassification, num_labels=3, summary_last_dropout=0.3)
    model, report = imported(network, tmp_path)
    for text in texts:  # one by one: transformers reads the last place, padding or not
        batch, hidden = look(model, [text])
        short = batch.replace(
            **{name: getattr(batch, name)[:, batch.real[0]] for name in ("ids", "example", "segment")}
        )
        theirs = run(network, short, segments=True)
        torch.testing.assert_close(score(model, "label", batch, hidden), theirs.logits, **PARITY)
    assert (report.architecture, report.left_over, report.missing) == ("XLNetForSequenceClassification", (), ())
    assert model.recipe.predict["label"].dropout == 0.3
    assert model.recipe.see == model.recipe.see.reading


def test_a_bare_network_gets_a_fresh_head(tmp_path):
    model, report = imported(xlnet(hf.XLNetModel), tmp_path)
    assert report.missing == ("predict.tokens.bias",)
    assert report.left_over == ()
    assert model.recipe.system.backbone.streams == 2


def test_what_config_says_of_the_memory_is_kept_or_told(tmp_path):
    model, report = imported(xlnet(mem_len=30, clamp_len=20, reuse_len=8, bi_data=True), tmp_path)
    backbone = model.recipe.system.backbone
    assert (backbone.memory, backbone.clamp) == (20, 20)
    assert "mem_len=30 reaches beyond clamp_len=20: the memory here has 20 tokens" in report.notes
    assert any("bi_data" in note for note in report.notes)
    assert imported(xlnet(mem_len=None), tmp_path / "other")[1].notes == ()


@pytest.mark.parametrize("changes, message", [
    ({"attn_type": "uni"}, "attn_type='uni', the backbone here can only do 'bi'"),
    ({"same_length": True}, "same_length=True"),
    ({"untie_r": False}, "untie_r=False"),
    ({"ff_activation": "silu"}, "ff_activation='silu'"),
    ({"n_head": 4}, "do not belong together"),
])  # fmt: skip
def test_what_our_network_cannot_compute_is_refused(tmp_path, changes, message):
    folder = folder_of(xlnet(), like_theirs(), tmp_path / "hf")
    edit_json(folder / "config.json", **changes | ({"d_head": 4} if "n_head" in changes else {}))
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")


@pytest.mark.parametrize("changes", [{"summary_type": "first"}, {"summary_activation": "relu"}])
def test_a_summary_of_another_kind_is_refused_for_a_classifier_alone(tmp_path, changes):
    imported(xlnet(**changes), tmp_path / "tokens")
    with pytest.raises(UserError, match=next(iter(changes))):
        imported(xlnet(hf.XLNetForSequenceClassification, **changes), tmp_path)


def assert_same_from_text(model, folder, auto, texts, head):
    export_hf(model, folder)
    theirs, encoded = from_text(opened(auto, folder), folder, texts)
    batch, hidden = look(model, texts)
    left = encoded["attention_mask"].bool()
    assert bool(left[:, -1].all()), "padding stands on the left"
    assert not bool(left.all())
    assert torch.equal(encoded["input_ids"][left], batch.ids[batch.real])
    assert torch.equal(encoded["token_type_ids"][left], batch.segment[batch.real])
    for mine, other in zip(hidden.layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(mine[batch.real], other[left], **PARITY)
    mine = score(model, head, batch, hidden)
    per_token = head == "tokens"
    torch.testing.assert_close(
        *((mine[batch.real], theirs.logits[left]) if per_token else (mine, theirs.logits)), **PARITY
    )


@pytest.mark.parametrize("settings", [
    [], ["predict.tokens.tied=false"], ["predict.tokens.bias=false"], ["system.backbone.clamp=12"],
    ["system.backbone.activation=gelu_tanh"],
], ids=str)  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_an_exported_model_is_the_same_in_transformers_from_raw_text(tmp_path, texts, settings):
    model = pretrained(tmp_path, *settings)
    assert_same_from_text(model, tmp_path / "hf", hf.AutoModelForCausalLM, texts, "tokens")


@pytest.mark.parametrize(
    "tokens", [lambda: tokenizer("unigram"), like_theirs], ids=["our tokenizer", "their tokenizer"]
)
def test_an_exported_classifier_is_the_same_in_transformers_from_raw_text(tmp_path, tokens):
    model = classifier(tmp_path, tokens())
    assert_same_from_text(model, tmp_path / "hf", hf.AutoModelForSequenceClassification, PAIRS, "label")
    config = hf.AutoConfig.from_pretrained(tmp_path / "hf")
    assert config.id2label == {0: "bad", 1: "fair", 2: "good"}
    assert (config.summary_last_dropout, config.mem_len, config.d_head) == (0.2, 12, 8)


def test_an_exported_network_without_segments_is_the_same_and_asks_for_none(tmp_path):
    model = pretrained(tmp_path, "system.backbone.segments=0")
    export_hf(model, tmp_path / "hf")
    theirs, encoded = from_text(opened(hf.AutoModelForCausalLM, tmp_path / "hf"), tmp_path / "hf", PAIRS)
    assert "token_type_ids" not in encoded
    batch, hidden = look(model, PAIRS)
    real = encoded["attention_mask"].bool()
    torch.testing.assert_close(hidden.last[batch.real], theirs.hidden_states[-1][real], **PARITY)


@pytest.mark.parametrize("tokens", ["ours", "theirs"])
def test_an_exported_tokenizer_frames_texts_and_pads_as_transformers_own(tmp_path, tokens):
    model = pretrained(tmp_path, tokens=like_theirs() if tokens == "theirs" else None)
    export_hf(model, tmp_path / "hf")
    found = hf.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert found.padding_side == "left"
    a, b = (
        found("the cat", add_special_tokens=False)["input_ids"],
        found("a dog", add_special_tokens=False)["input_ids"],
    )
    both = found("the cat", "a dog")
    assert both["input_ids"] == [*a, found.sep_token_id, *b, found.sep_token_id, found.cls_token_id]
    assert both["token_type_ids"] == [0] * (len(a) + 1) + [1] * (len(b) + 1) + [2]
    if tokens == "theirs":
        assert found.cls_token == "<cls>"
        assert both["input_ids"] == theirs_of()("the cat", "a dog")["input_ids"]


@pytest.mark.parametrize("build", [pretrained, classifier])
def test_import_of_an_export_has_identical_weights_and_recipe_parts(tmp_path, build):
    model = build(tmp_path)
    save_run(model, tmp_path / "a")
    export_hf(model, tmp_path / "hf")
    report = import_hf(tmp_path / "hf", tmp_path / "b")
    assert (report.missing, report.left_over, report.notes) == ((), (), ())
    before, after = weights(tmp_path / "a"), weights(tmp_path / "b")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    one, other = (json.loads((tmp_path / name / "recipe.json").read_text()) for name in ("a", "b"))
    one["system"]["backbone"]["length"] = other["system"]["backbone"]["length"]  # XLNet knows no longest text
    assert {key: (one[key], other[key]) for key in ("layout", "predict", "see", "arrange", "hide", "system")
            if one[key] != other[key]} == {}  # fmt: skip


@pytest.mark.parametrize("settings, message", [
    (["system.backbone.streams=1"], "streams=2, got 1"),
    (["system.backbone.shared_biases=true"], "shared_biases=False, got True"),
    (["system.backbone.scaled_embeddings=true"], "scaled_embeddings=False, got True"),
    (["system.backbone.head=16"], "head=8, got 16"),
    (["see=LeftToRight", "hide=Next"], "no Transformer-XL any more.*use the run folder"),
])  # fmt: skip
def test_what_transformers_cannot_express_is_refused_with_the_reason(tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        export_hf(pretrained(tmp_path, *settings), tmp_path / "hf")


def test_the_backbone_is_what_config_says(tmp_path):
    model, _ = imported(xlnet(n_layer=3, n_head=4, d_inner=40, dropout=0.2, initializer_range=0.01), tmp_path)
    backbone = model.recipe.system.backbone
    assert isinstance(backbone, TransformerXL)
    assert (backbone.layers, backbone.heads, backbone.head, backbone.feedforward) == (3, 4, 4, 40)
    assert (backbone.dropout, backbone.deviation, backbone.segments, backbone.scaled_embeddings) == (
        0.2,
        0.01,
        3,
        False,
    )
