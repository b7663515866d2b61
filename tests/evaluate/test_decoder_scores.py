"""Scores of sentences by a decoder: equal, token by token, to rows made by hand, to transformers, and to the loss of training."""

import pytest
import torch

from tests.convert.in_transformers import opened_by_auto
from tests.convert.parts import SENTENCES
from tests.evaluate.test_sentence_scores import TEXTS, ids_of, log_of, logits, made
from unmask import evaluate
from unmask.convert import export_hf
from unmask.errors import UserError
from unmask.evaluate import sentence_scores
from unmask.evaluate.last_word import LastWord, evaluate_last_words
from unmask.evaluate.minimal_pairs import Pair, evaluate_pairs
from unmask.evaluate.sentence_scores import score_sentences
from unmask.evaluate.sentence_way import ways_of
from unmask.hide import Mask, Window
from unmask.infer.batches import left_padded
from unmask.infer.fill import fill

SENTENCE = SENTENCES[0]


@pytest.fixture
def model(request, tmp_path):
    return made(request.param, tmp_path)


def scores_of(model, sentence) -> list[float]:
    """The score of each token."""
    *_, (logs, _) = sentence_scores._passes(model, ways_of(model)[0], torch.tensor([ids_of(model, sentence)]))
    return torch.cat(logs).tolist()


def masked(model, sentence):
    """For each token, itself, the tokens before it, and the source in which it is masked."""
    cls, sep, mask = (model.tokenizer.role(name) for name in ("cls", "sep", "mask"))
    ids = ids_of(model, sentence)
    for i, token in enumerate(ids):
        yield token, ids[:i], [cls, *ids[:i], mask, *ids[i + 1 :], sep]


@torch.no_grad()
def by_hand(model, source, decoder) -> torch.Tensor:
    """The scores of the vocabulary after the last token of a decoder row."""
    batch = left_padded([source], 0)
    batch = batch.replace(rank=torch.zeros_like(batch.ids), decoder=decoder.replace(rank=decoder.position))
    return model.system.predict["tokens"].decode(model.system.backbone(batch)[0], batch)[0, -1]


def whole_text(model, sentence) -> list[float]:
    """The decoder reads the end of a text, [CLS] and the tokens before."""
    cls, sep = (model.tokenizer.role(name) for name in ("cls", "sep"))
    return [
        log_of(by_hand(model, source, left_padded([[sep, cls, *before]], 0)), token)
        for token, before, source in masked(model, sentence)
    ]


def window(model, sentence) -> list[float]:
    """The decoder reads one [MASK], at the position that the token has in the source."""
    found = []
    for token, before, source in masked(model, sentence):
        decoder = left_padded([[model.tokenizer.role("mask")]], 0)
        decoder = decoder.replace(position=torch.tensor([[1 + len(before)]]))
        found.append(log_of(by_hand(model, source, decoder), token))
    return found


@pytest.mark.parametrize("model, expected", [("bart", whole_text), ("mass", window)], indirect=["model"])
def test_each_token_is_scored_by_its_own_rows(model, expected):
    (way,) = ways_of(model)
    assert (way.name, way.track) == ("pseudo-likelihood", "main")
    found = expected(model, SENTENCE)
    assert scores_of(model, SENTENCE) == pytest.approx(found, abs=1e-4)
    assert len({round(score, 2) for score in found}) > len(found) / 2  # the tokens differ, so the order is tested too
    assert score_sentences(model, TEXTS).value == pytest.approx([sum(expected(model, t)) for t in TEXTS], abs=1e-3)


@pytest.mark.parametrize("model", ["bart"], indirect=True)
def test_transformers_gives_bart_s_scores_of_each_token(model):
    network = opened_by_auto(export_hf(model, model.folder / "hf").architecture, model.folder / "hf")
    assert type(network).__name__ == "BartForConditionalGeneration"
    cls, sep = (model.tokenizer.role(name) for name in ("cls", "sep"))
    expected = [
        log_of(logits(network, source, decoder_input_ids=torch.tensor([[sep, cls, *before]]))[-1], token)
        for token, before, source in masked(model, SENTENCE)
    ]
    assert scores_of(model, SENTENCE) == pytest.approx(expected, abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("model", ["mass"], indirect=True)
def test_the_score_of_a_token_is_minus_the_loss_of_a_window_of_this_token(model):
    ids = ids_of(model, SENTENCE)
    row = left_padded([[model.tokenizer.role("cls"), *ids, model.tokenizer.role("sep")]], 0)
    text = (row.position > 0) & (row.position <= len(ids))
    row = row.replace(columns={"word": torch.where(text, row.position, -1), "sentence": torch.where(text, 0, -1)})
    one, found = Window(budget=1e-6, replace=Mask(mask=1.0, random=0.0)), {}
    for visit in range(1000):  # at each visit the window is anywhere
        batch, counts = model.system.hide(row.replace(visit=torch.tensor([visit])), one)
        (place,) = (batch.ids != row.ids)[0].nonzero().flatten().tolist()
        assert int(counts["tokens"]) == 1
        if place not in found:
            found[place] = -float(model.system.step(batch)[0]["tokens"].total)
        if len(found) == len(ids):
            break
    assert [found[place] for place in sorted(found)] == pytest.approx(scores_of(model, SENTENCE), abs=1e-4)


@pytest.mark.parametrize("model", ["bart", "mass"], indirect=True)
def test_a_score_does_not_depend_on_the_other_sentences_of_its_length(model):
    words = sorted({"cat", "dog", "boat", "rain", "sun", "river"})
    sentences = [f"the {one} and the {other}" for one in words for other in words]
    together = score_sentences(model, sentences).value
    assert [score_sentences(model, [one]).value[0] for one in sentences[:9]] == pytest.approx(together[:9], rel=1e-5)


@pytest.mark.parametrize("model", ["bart", "mass"], indirect=True)
def test_equal_scores_are_wrong_and_counted(model):
    found = evaluate_pairs(model, [Pair("the cat", "the cat"), Pair("the cat ", "the cat")])
    assert found["accuracy"] == 0
    assert list(found["notes"].values()) == [1, 1]


@pytest.mark.parametrize("model", ["bart", "mass"], indirect=True)
def test_a_sentence_that_is_too_long_is_refused(model):
    with pytest.raises(UserError, match="text number 2: the sentence has .* tokens, but .* at most 62: shorten"):
        score_sentences(model, ["rain", " ".join(SENTENCES)])


@pytest.mark.parametrize("model", ["bart", "mass"], indirect=True)
def test_last_words_and_gaps_are_refused_as_before(model):
    with pytest.raises(UserError, match="does not predict the next token, so it cannot be asked for last words"):
        evaluate_last_words(model, [LastWord("The cat sat on the", "mat")])
    with pytest.raises(UserError, match="with a decoder.*give the text with its gaps to 'unmask generate'"):
        fill(model, "the [MASK] sat")


@pytest.mark.parametrize("model", ["transformer", "cove"], indirect=True)
def test_a_decoder_that_writes_another_text_scores_no_sentences(model, tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"good": "the cat", "bad": "cat the"}\n')
    with pytest.raises(
        UserError, match="its decoder writes another text than its encoder reads: use a model that was pretr"
    ):
        evaluate.evaluate_file(model, file)


def test_an_encoder_that_has_never_read_a_mask_scores_no_sentences(tmp_path):
    model = made("bart", tmp_path, "hide=(Rewrite, Rotate, Masked(budget=0.2, replace=Delete, at=none))")
    with pytest.raises(
        UserError, match=r"its encoder has never read a \[MASK\]: use a model whose hide writes \[MASK\]"
    ):
        score_sentences(model, TEXTS)


def test_facts_decide_and_not_the_network_or_the_other_rules(tmp_path):
    """A model of translation that learns to write what it reads is scored as BART is."""
    model = made("transformer", tmp_path, "arrange=Blocks", "layout=[CLS] a [SEP]", "hide=(Rewrite, Masked(at=none))")
    assert scores_of(model, SENTENCE) == pytest.approx(whole_text(model, SENTENCE), abs=1e-4)
