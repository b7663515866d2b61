"""OpenAI's GPT: imported, it computes what transformers computes, and gets the special tokens that it lacks."""

import dataclasses
import json

import pytest
import torch
import transformers as hf

from tests.convert.parts import (
    PAIRS,
    PARITY,
    TEXTS,
    assert_same_vectors,
    folder_of,
    look,
    run,
    score,
    shaken,
    tokenizer,
)
from unmask.convert import import_hf
from unmask.errors import UserError
from unmask.infer import stream
from unmask.infer.model import open_run
from unmask.text import WordBPE

SIZE = tokenizer("openai").backend.get_vocab_size()
ADDED = ("<pad>", "<start>", "<delimiter>", "<extract>")


def gpt(head=hf.OpenAIGPTLMHeadModel, **changes):
    shape = {"vocab_size": SIZE, "n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 2}
    return shaken(head(hf.OpenAIGPTConfig(**(shape | changes))))


def imported(network, path):
    report = import_hf(folder_of(network, tokenizer("openai"), path / "hf"), path / "run")
    return open_run(path / "run", device="cpu"), report


def bare(model):
    """The same model, reading texts without the special tokens that the checkpoint does not know."""
    return dataclasses.replace(model, recipe=model.recipe.replace(layout="a b"))


@pytest.mark.parametrize("changes", [{}, {"afn": "relu"}, {"tie_word_embeddings": False}, {"layer_norm_epsilon": 0.1}])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_language_model_gives_the_same_vectors_and_token_scores(tmp_path, changes, texts):
    network = gpt(**changes)
    model, report = imported(network, tmp_path)
    batch, hidden = look(bare(model), texts)
    theirs = run(network, batch.replace(ids=batch.ids.clamp(max=SIZE - 1)), segments=False)  # padding is a new token
    assert_same_vectors(hidden, theirs, batch)
    tokens = score(model, "tokens", batch, hidden)[..., :SIZE]
    torch.testing.assert_close(tokens[batch.real], theirs.logits[batch.real], **PARITY)
    assert (report.architecture, report.recipe, report.left_over) == ("OpenAIGPTLMHeadModel", "gpt", ())


def test_the_special_tokens_that_it_lacks_get_random_rows_at_the_end_and_the_report_says_so(tmp_path):
    network = gpt(initializer_range=0.02)
    model, report = imported(network, tmp_path)
    table = model.system.backbone.embed.token.weight.detach()
    assert [model.tokenizer.token(SIZE + i) for i in range(4)] == list(ADDED)
    assert set(range(SIZE, SIZE + 4)) <= set(model.tokenizer.vocabulary.special)
    assert torch.equal(table[:SIZE], network.transformer.tokens_embed.weight.detach())
    assert 0.01 < float(table[SIZE:].std()) < 0.03
    assert len({tuple(row.tolist()) for row in table[SIZE:]}) == 4
    assert report.missing == (f"backbone.embed.token.weight[{SIZE}:]",)
    assert model.recipe.layout == "[START] a [DELIMITER] b [EXTRACT]"
    assert model.recipe.tokenizer == WordBPE(vocab=SIZE + 4)
    batch, _ = look(model, PAIRS)
    ids = [model.tokenizer.role(role) for role in ("start", "delimiter", "extract")]
    assert [int((batch.ids[0] == i).sum()) for i in ids] == [1, 1, 1]
    assert batch.ids.flatten()[batch.summary].tolist() == [ids[2]] * 3


def test_an_untied_output_gets_the_rows_too(tmp_path):
    model, report = imported(gpt(tie_word_embeddings=False), tmp_path)
    assert len(model.system.predict["tokens"].weight) == SIZE + 4
    assert report.missing == (f"backbone.embed.token.weight[{SIZE}:]", f"predict.tokens.weight[{SIZE}:]")


@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["one text", "two texts"])
def test_a_classifier_reads_the_bare_text_and_gives_the_same_scores(tmp_path, texts):
    network = gpt(hf.OpenAIGPTForSequenceClassification, num_labels=3, pad_token_id=SIZE - 1)
    model, report = imported(network, tmp_path)
    assert model.recipe.layout == "a b"
    batch, hidden = look(model, texts)
    theirs = run(network, batch.replace(ids=batch.ids.clamp(max=SIZE - 1)), segments=False)
    torch.testing.assert_close(score(model, "label", batch, hidden), theirs.logits, **PARITY)
    assert (report.architecture, report.left_over) == ("OpenAIGPTForSequenceClassification", ())


def test_a_folder_with_vocab_and_merges_alone_reads_text_as_transformers_does(tmp_path):
    gpt().save_pretrained(tmp_path / "hf")
    known = json.loads(tokenizer("openai").backend.to_str())["model"]
    (tmp_path / "hf/vocab.json").write_text(json.dumps(known["vocab"]))
    (tmp_path / "hf/merges.txt").write_text("#version: 0.2\n" + "\n".join(map(" ".join, known["merges"])))
    import_hf(tmp_path / "hf", tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    theirs = hf.OpenAIGPTTokenizer(vocab=known["vocab"], merges=[tuple(merge) for merge in known["merges"]])
    for text in (*(text.a for text in TEXTS), "The RIVER, it's Über-rain!\nxyz 🙂"):
        assert model.tokenizer.encode(text) == theirs(text)["input_ids"], text


def test_it_goes_on_with_a_text_and_never_writes_a_special_token_but_the_end(tmp_path):
    model, _ = imported(gpt(), tmp_path)
    for seed in range(3):
        text = "".join(stream(model, "The cat", tokens=12, seed=seed).value)
        assert text.startswith("the cat")
        assert "<" not in text


def test_an_activation_that_the_backbone_does_not_have_is_refused(tmp_path):
    with pytest.raises(UserError, match="afn='silu', the backbone here can only do gelu, relu"):
        imported(gpt(afn="silu"), tmp_path)
