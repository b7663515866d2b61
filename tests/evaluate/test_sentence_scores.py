"""Scores of sentences: equal to loops over transformers' network, token by token, for each way to score."""

import math

import numpy as np
import pytest
import torch

from tests.convert.in_transformers import NAMES, opened_by_auto
from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer_for
from unmask import recipes, text
from unmask.axes import gives_of
from unmask.convert import export_hf
from unmask.errors import UserError
from unmask.evaluate import sentence_scores
from unmask.evaluate.sentence_scores import score_sentences
from unmask.evaluate.sentence_way import ways_of
from unmask.infer.batches import left_padded

TEXTS = ["rain", SENTENCES[0][:30], "The cat sat.", "a dog ran away", SENTENCES[1][:24]]
WAYS = {
    "albert": "pseudo-likelihood", "awd-lstm": "likelihood", "bart": "pseudo-likelihood", "bert": "pseudo-likelihood", "bert-wwm": "pseudo-likelihood",
    "bert-wwm-ext": "pseudo-likelihood", "char-transformer": "likelihood", "deberta": "pseudo-likelihood",
    "electra": "replaced tokens", "ernie": "pseudo-likelihood", "ernie-2": "pseudo-likelihood", "ernie-thu": "pseudo-likelihood",
    "gpt": "likelihood", "gpt-bert": "likelihood + pseudo-likelihood",
    "gpt2": "likelihood", "mass": "pseudo-likelihood", "modernbert": "pseudo-likelihood", "roberta": "pseudo-likelihood", "spanbert": "pseudo-likelihood",
    "structbert": "pseudo-likelihood", "transformer-xl": "likelihood", "unilm": "likelihood", "unmask": "likelihood + pseudo-likelihood", "xlnet": "likelihood",
}  # fmt: skip


def made(name, folder, *settings, **changes):
    recipe = recipe_of(name, *settings).replace(**changes)
    byte = isinstance(recipe.tokenizer, text.Bytes)
    return model_of(recipe, text.train(recipe.tokenizer, SENTENCES) if byte else tokenizer_for(recipe), folder)


@pytest.fixture
def model(request, tmp_path):
    return made(request.param, tmp_path)


def log_of(scores, token) -> float:
    scores = scores.double()
    return float(scores[token] - scores.exp().sum().log())


def ids_of(model, sentence) -> list[int]:
    ids = model.tokenizer.encode(sentence)
    assert ids
    return ids


def logits(network, ids, **given):
    with torch.no_grad():
        found = network(torch.tensor([ids]), **given)
    return (found.prediction_logits if "prediction_logits" in found else found.logits)[0]


def one_mask_at_a_time(model, network, sentence) -> float:
    cls, sep, mask = (model.tokenizer.role(name) for name in ("cls", "sep", "mask"))
    ids, total = ids_of(model, sentence), 0.0
    for i, token in enumerate(ids):
        total += log_of(logits(network, [cls, *ids[:i], mask, *ids[i + 1 :], sep])[i + 1], token)
    return total


def each_after_the_ones_before(model, network, sentence, first) -> float:
    ids = ids_of(model, sentence)
    return sum(log_of(logits(network, [first, *ids[:i]])[-1], token) for i, token in enumerate(ids))


def none_replaced(model, network, sentence) -> float:
    ids = ids_of(model, sentence)
    scores = logits(network, [model.tokenizer.role("cls"), *ids, model.tokenizer.role("sep")])[1:-1].tolist()
    return sum(math.log(1 - 1 / (1 + math.exp(-score))) for score in scores)


def by_two_streams(model, network, sentence) -> float:
    ids, total = [model.tokenizer.role("sep"), *ids_of(model, sentence)], 0.0
    for i in range(1, len(ids)):
        blocked = torch.ones(
            1, i + 1, i + 1
        ).triu()  # no token sees itself or a later one; the content stream adds itself
        asked = torch.zeros(1, 1, i + 1)
        asked[0, 0, i] = 1
        total += log_of(logits(network, ids[: i + 1], perm_mask=blocked, target_mapping=asked)[0], ids[i])
    return total


def by_transformers(model, network, sentence) -> float:
    return {
        "albert": one_mask_at_a_time, "bert": one_mask_at_a_time, "roberta": one_mask_at_a_time, "ernie": one_mask_at_a_time,
        "electra": none_replaced, "xlnet": by_two_streams,
        "gpt2": lambda *given: each_after_the_ones_before(*given, model.tokenizer.role("sep")),
        "gpt": lambda *given: each_after_the_ones_before(*given, model.tokenizer.role("start")),
    }[model.recipe.name](model, network, sentence)  # fmt: skip


@pytest.mark.parametrize(
    "model", ["albert", "bert", "electra", "ernie", "gpt", "gpt2", "roberta", "xlnet"], indirect=True
)
def test_a_score_is_the_sum_over_tokens_that_transformers_gives(model):
    assert model.recipe.name in NAMES
    network = opened_by_auto(export_hf(model, model.folder / "hf").architecture, model.folder / "hf")
    found = score_sentences(model, TEXTS).value
    assert found == pytest.approx([by_transformers(model, network, sentence) for sentence in TEXTS], rel=1e-4, abs=1e-4)


@torch.no_grad()
def on_prefixes(model, sentence, first, *, masked=False, segment=0) -> float:
    """Each token after a row of only the tokens before it."""
    ids, total = ids_of(model, sentence), 0.0
    for i, token in enumerate(ids):
        batch = left_padded([[first, *ids[:i], *([model.tokenizer.role("mask")] if masked else [])]], 0)
        batch = batch.replace(rank=batch.position, segment=batch.segment + segment)
        total += log_of(model.system.predict["tokens"].decode(model.system.backbone(batch)[0], batch)[0, -1], token)
    return total


@pytest.mark.parametrize(
    "model, track, how",
    [
        ("char-transformer", "main", {}),
        ("transformer-xl", "main", {}),
        ("gpt-bert", "left", {}),
        ("unilm", "left", {"masked": True, "segment": 2}),  # a [MASK] after the tokens before, in the view of the left
    ],
    indirect=["model"],
)
def test_a_likelihood_reads_only_the_tokens_before(model, track, how):
    way = ways_of(model)[0]
    assert (way.name, way.track) == ("likelihood", track)
    first = (model.opening or [model.tokenizer.role("sep")])[0]
    *_, last = sentence_scores.trace_sentences(model, TEXTS)
    found = last["by_way"]["likelihood"]
    assert found == pytest.approx([on_prefixes(model, sentence, first, **how) for sentence in TEXTS], rel=1e-4)


@torch.no_grad()
def test_rare_words_are_scored_through_their_clusters(tmp_path):
    recipe = recipes.get("transformer-xl", size="tiny", variant="words", settings=["system.backbone.cutoffs=(6, 10)"])
    model = model_of(recipe, text.train(text.WholeWords(vocab=40), SENTENCES * 3), tmp_path)
    found = score_sentences(model, TEXTS[1:]).value
    expected = [on_prefixes(model, sentence, model.tokenizer.role("sep")) for sentence in TEXTS[1:]]
    assert found == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_a_token_that_may_be_copied_is_copied_or_written(tmp_path):
    recipe = recipes.get("electra", size="tiny", variant="all-tokens")
    model = model_of(recipe, tokenizer_for(recipe), tmp_path)
    ids = ids_of(model, TEXTS[1])
    batch = left_padded([[model.tokenizer.role("cls"), *ids, model.tokenizer.role("sep")]], 0)
    hidden, head = model.system.look(batch), model.system.predict["original"]
    written, kept = (
        head.decode(hidden, batch)[0].double().softmax(-1),
        head.keep(hidden.last)[0, :, 0].double().sigmoid(),
    )
    expected = sum(math.log(kept[i] + (1 - kept[i]) * written[i, token]) for i, token in enumerate(ids, 1))
    assert [way.name for way in ways_of(model)] == ["replaced tokens"]
    assert score_sentences(model, [TEXTS[1]]).value == pytest.approx([expected], rel=1e-4)


@torch.no_grad()
def test_a_network_that_has_never_read_a_mask_reads_the_sentence_as_it_is(tmp_path):
    recipe = recipes.get("electra", size="tiny", variant="replace-mlm")
    model = model_of(recipe, tokenizer_for(recipe), tmp_path)
    ids = ids_of(model, TEXTS[1])
    batch = left_padded([[model.tokenizer.role("cls"), *ids, model.tokenizer.role("sep")]], 0)
    scores = model.system.predict["original"].decode(model.system.look(batch), batch)[0]
    expected = sum(log_of(scores[i], token) for i, token in enumerate(ids, 1))
    assert [way.name for way in ways_of(model)] == ["replaced tokens"]
    assert score_sentences(model, [TEXTS[1]]).value == pytest.approx([expected], rel=1e-4)


@torch.no_grad()
def test_a_masked_token_may_be_predicted_from_the_place_before(tmp_path):
    model = made("gpt-bert", tmp_path, "tracks={}", "writes_with=none")
    cls, sep, mask = (model.tokenizer.role(name) for name in ("cls", "sep", "mask"))
    ids, expected = ids_of(model, TEXTS[1]), 0.0
    for i, token in enumerate(ids):
        batch = left_padded([[cls, *ids[:i], mask, *ids[i + 1 :], sep]], 0)
        expected += log_of(model.system.predict["tokens"].decode(model.system.look(batch), batch)[0, i], token)
    assert [way.name for way in ways_of(model)] == ["pseudo-likelihood"]
    assert score_sentences(model, [TEXTS[1]]).value == pytest.approx([expected], rel=1e-4)


@torch.no_grad()
@pytest.mark.parametrize(("name", "place"), [("gpt-bert", 0), ("unmask", 1)])
def test_a_model_that_writes_and_fills_in_adds_both_scores(name, place, tmp_path):
    model = made(name, tmp_path)
    cls, sep, mask = (model.tokenizer.role(role) for role in ("cls", "sep", "mask"))
    ids, filled = ids_of(model, TEXTS[1]), 0.0
    for i, token in enumerate(ids):
        batch = left_padded([[cls, *ids[:i], mask, *ids[i + 1 :], sep]], 0)
        filled += log_of(model.system.predict["tokens"].decode(model.system.look(batch), batch)[0, i + place], token)
    written = on_prefixes(model, TEXTS[1], cls)
    *_, last = sentence_scores.trace_sentences(model, [TEXTS[1]])
    assert [float(scores[0]) for scores in last["by_way"].values()] == pytest.approx([written, filled], rel=1e-4)
    assert last["scores"] == pytest.approx([written + filled], rel=1e-4)


PAIRS = [n for n in recipes.names() if "second text" in gives_of(recipes.get(n, size=recipes.smallest(n)).hide)]


def test_every_recipe_that_learns_from_single_texts_has_a_way():
    assert sorted([*WAYS, *PAIRS, "elmo"]) == sorted(recipes.names())


def test_a_model_whose_vectors_have_two_halves_scores_no_sentences(tmp_path):
    with pytest.raises(UserError, match="cannot score sentences: it predicts neighbours"):
        score_sentences(made("elmo", tmp_path), TEXTS)


@pytest.mark.parametrize("model", WAYS, indirect=True)
def test_a_score_depends_on_neither_the_other_sentences_nor_the_size_of_a_pass(model, monkeypatch):
    assert " + ".join(way.name for way in ways_of(model)) == WAYS[model.recipe.name]
    together = score_sentences(model, [*TEXTS, TEXTS[1]]).value
    assert len({round(score, 3) for score in together[:-1]}) == len(TEXTS)
    assert together[-1] == together[1]
    alone = [score_sentences(model, [sentence]).value[0] for sentence in TEXTS]
    assert alone == pytest.approx(together[:-1], rel=1e-5)
    monkeypatch.setattr(sentence_scores, "CPU_PASS", 50)
    monkeypatch.setattr(sentence_scores, "SCORES", {"cpu": 1000})
    assert score_sentences(model, TEXTS).value == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("model", ["bert", "electra", "gpt2", "xlnet"], indirect=True)
def test_every_token_counts(model):
    ids, other = ids_of(model, TEXTS[1]), ids_of(model, "x")[-1]
    changed = [ids[:i] + [other] + ids[i + 1 :] for i in range(len(ids)) if ids[i] != other]
    *_, last = sentence_scores.trace_tokens(model, ways_of(model)[0], [np.array(row) for row in [ids, *changed]])
    assert len(set(last["scores"].tolist())) == len(changed) + 1 > 10


def test_a_model_without_such_scores_is_refused(tmp_path):
    model = made("bert", tmp_path)
    without = model.recipe.replace(predict={})
    with pytest.raises(
        UserError, match="cannot score sentences: it predicts nothing; use a model that predicts tokens"
    ):
        score_sentences(type(model)(model.system, without, model.tokenizer, tmp_path), TEXTS)


def test_a_sentence_that_is_empty_or_too_long_is_refused_by_its_number(tmp_path):
    model = made("bert", tmp_path)
    with pytest.raises(UserError, match="text number 2: the sentence is empty"):
        score_sentences(model, ["rain", " "])
    with pytest.raises(
        UserError, match=r"text number 1: the sentence has .* tokens, but .* reads sentences of at most 62"
    ):
        score_sentences(model, [" ".join(SENTENCES)])
    with pytest.raises(UserError, match="there are no sentences"):
        score_sentences(model, [])


def test_unknown_words_are_counted(tmp_path):
    (note,) = score_sentences(made("bert", tmp_path), ["rain", "été 今天"]).notes.items()
    assert note == ("sentences contain words or characters that the tokenizer does not know", 1)
