"""Hugging Face's own client against the service: every answer is the one that the Python API gives."""

import numpy as np
import pytest
from huggingface_hub import InferenceClient

import unmask
from tests.convert.parts import SENTENCES
from unmask.infer import embed
from unmask.infer.text_batches import room_of


@pytest.fixture(scope="module")
def at(url):
    return lambda name, task: InferenceClient(model=f"{url}/models/{name}/{task}", token="none")


def test_gaps_are_filled_as_by_the_api(at, runs):
    text = "The cat [MASK] on the mat."
    found = at("bert", "fill-mask").fill_mask(text, top_k=3)
    (expected,) = unmask.load(runs / "bert", device="cpu").fill(text, top=3)
    assert [(one.token, one.token_str) for one in found] == [(one.id, one.token) for one in expected]
    np.testing.assert_allclose([one.score for one in found], [one.probability for one in expected], atol=1e-5)
    assert "[MASK]" not in found[0].sequence


def test_only_the_targets_fill_a_gap_if_they_are_given(at, runs):
    text, model = "The cat [MASK] on the mat.", unmask.load(runs / "bert", device="cpu")
    (every,) = model.fill(text, top=model.tokenizer.vocabulary.size)
    words = [one for one in every if one.token.isalpha() and len(model.tokenizer.encode(one.token)) == 1][3:9:2]
    found = at("bert", "fill-mask").fill_mask(text, targets=[one.token for one in reversed(words)])
    assert [one.token for one in found] == [one.id for one in words]
    np.testing.assert_allclose([one.score for one in found], [one.probability for one in words], atol=1e-5)


def test_labels_are_those_of_the_api(at, runs):
    text = SENTENCES[0]
    found = at("bert-classify", "text-classification").text_classification(text)
    (expected,) = unmask.load(runs / "bert-classify", device="cpu").predict(text)
    assert found[0].label == expected.label
    np.testing.assert_allclose([one.score for one in found], [p for _, p in expected.top(9)], atol=1e-5)


def test_vectors_are_those_of_the_api(at, runs):
    found = at("bert", "feature-extraction").feature_extraction(SENTENCES[0])
    np.testing.assert_allclose(found, unmask.load(runs / "bert", device="cpu").embed(SENTENCES[0]), atol=1e-5)


def test_a_long_text_is_cut_on_the_side_that_is_asked_for(at, runs):
    model = unmask.load(runs / "bert", device="cpu")
    ids = model.tokenizer.encode("cat mat " * 30)
    long, room = model.tokenizer.decode(ids), room_of(model)
    found = at("bert", "feature-extraction").feature_extraction(long, truncate=True, truncation_direction="left")
    np.testing.assert_allclose(found[0], embed(model, [np.array(ids[-room:])]).value[0], atol=1e-5)
    assert np.abs(found[0] - embed(model, [np.array(ids[:room])]).value[0]).max() > 1e-4


def test_tagged_spans_have_the_characters_of_the_text(at, runs):
    text = "every window near  London, and the doctor ignored the report near the river."
    found = at("tags", "token-classification").token_classification(text)
    (expected,) = unmask.load(runs / "tags", device="cpu").predict([text])
    assert expected.entities, "the model must find something"
    assert [(one.entity_group, one.word) for one in found] == [
        (one["type"], " ".join(one["words"])) for one in expected.entities
    ]
    assert all(text[one.start : one.end] == one.word for one in found)
    kept = at("tags", "token-classification").token_classification(text, ignore_labels=[found[0].entity_group])
    assert kept == [one for one in found if one.entity_group != found[0].entity_group]


def test_an_answer_in_a_text_is_that_of_the_api(at, runs):
    asked, text = "who opened it?", "the doctor opened the case " * 20  # read in windows
    found = at("span", "question-answering").question_answering(question=asked, context=text)
    (expected,) = unmask.load(runs / "span", device="cpu").predict([(asked, text)])
    assert (found.answer, (found.start, found.end)) == expected.best[0][:2]
