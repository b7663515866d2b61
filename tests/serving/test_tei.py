"""The routes of Text Embeddings Inference, and our own: every answer is the one that the Python API gives."""

import json

import numpy as np
import pytest

import unmask
from tests.convert.parts import SENTENCES
from tests.serving.conftest import WORDS, get, post, running, service_of
from unmask.search import rerank
from unmask.serving.indexes import open_indexes


def load(runs, name):
    return unmask.load(runs / name, device="cpu")


def test_vectors_have_length_one_unless_they_are_asked_for_as_they_are(url, runs):
    vectors = load(runs, "bert").embed(SENTENCES)
    plain = post(url, "/embed", {"inputs": SENTENCES, "normalize": False})[1]
    np.testing.assert_allclose(plain, vectors, atol=1e-5)
    unit = post(url, "/models/bert/embed", {"inputs": SENTENCES})[1]
    np.testing.assert_allclose(unit, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-5)
    cosines = post(url, "/similarity", {"inputs": {"source_sentence": SENTENCES[0], "sentences": SENTENCES[1:]}})[1]
    np.testing.assert_allclose(cosines, np.array(unit)[1:] @ np.array(unit)[0], atol=1e-5)


def test_the_mean_of_the_vectors_of_tokens_is_the_vector_of_the_text(url, runs):
    (tokens,) = post(url, "/embed_all", {"inputs": SENTENCES[0]})[1]
    names = post(url, "/tokenize", {"inputs": SENTENCES[0]})[1][0]
    assert len(tokens) == len(names)
    np.testing.assert_allclose(np.mean(tokens, axis=0), load(runs, "bert").embed(SENTENCES[0])[0], atol=1e-5)


def test_only_the_first_dimensions_are_given_if_asked(url, runs):
    expected = load(runs, "vectors").embed(WORDS, dims=4)
    np.testing.assert_allclose(
        post(url, "/models/vectors/embed", {"inputs": WORDS, "dimensions": 4})[1], expected, atol=1e-5
    )


def test_labels_of_texts_and_pairs(url, runs):
    expected = load(runs, "bert-classify").predict(WORDS)
    found = post(url, "/predict", {"inputs": [[text] for text in WORDS]})[1]
    assert [one[0]["label"] for one in found] == [one.label for one in expected]
    pair = post(url, "/models/pairs/predict", {"inputs": WORDS[:2]})[1]
    (wanted,) = load(runs, "pairs").predict(tuple(WORDS[:2]))
    assert {one["label"]: pytest.approx(one["score"], abs=1e-5) for one in pair} == wanted.probabilities


def test_texts_are_ordered_as_by_the_api(url, runs):
    scores = rerank(load(runs, "pairs"), "who?", WORDS)
    found = post(url, "/rerank", {"query": "who?", "texts": WORDS, "return_text": True})[1]
    assert [one["index"] for one in found] == sorted(range(len(WORDS)), key=lambda i: -scores[i])
    assert [one["text"] for one in found] == [WORDS[one["index"]] for one in found]
    np.testing.assert_allclose([one["score"] for one in found], sorted(scores, reverse=True), atol=1e-5)


def test_tokens_are_decoded_to_their_text(url, runs):
    (tokens,) = post(url, "/models/bert/tokenize", {"inputs": SENTENCES[0]})[1]
    assert [one["text"] for one in tokens if one["special"]] == ["[CLS]", "[SEP]"]
    ids = [one["id"] for one in tokens]
    assert post(url, "/models/bert/decode", {"ids": ids})[1] == [load(runs, "bert").tokenizer.decode(ids[1:-1])]
    assert all(SENTENCES[0][t["start"] : t["stop"]].lower() == t["text"].removeprefix("##") for t in tokens[1:-1])


def test_information_health_and_metrics(url, runs):
    about = get(url, "/models/bert-classify/info")[1]
    assert tuple(about["model_type"]["classifier"]["label2id"]) == load(runs, "bert-classify").labels
    assert get(url, "/health")[0] == 200
    page = get(url, "/metrics")[1]
    assert "unmask_batch_next_tokens_count" in page
    assert "unmask_request_queue_duration_bucket" in page


def test_adapters_share_the_weights_of_their_base_and_answer_as_alone(service, url, runs):
    first, second = (service.models.get(name).model for name in ("first", "second"))
    assert first.system.backbone.embed.token.weight is second.system.backbone.embed.token.weight
    for name in ("first", "second", "first"):
        found = post(url, f"/models/{name}/answer", {"examples": WORDS})[1]
        expected = [one.as_json(1) for one in load(runs, name).predict(WORDS)]
        for one, other in zip(found, expected, strict=True):
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    rows = [{"text": text, "id": 7} for text in WORDS]  # as in a file
    assert post(url, "/models/first/answer", {"examples": rows}) == post(
        url, "/models/first/answer", {"examples": WORDS}
    )
    assert post(url, "/models/first/answer", {"examples": WORDS}) != post(
        url, "/models/second/answer", {"examples": WORDS}
    )


def test_an_explanation_is_that_of_the_api(url, runs):
    asked = {"recipe": "bert", "size": "tiny", "text": SENTENCES[0], "visit": 1}
    expected = unmask.explain("bert", SENTENCES[0], size="tiny", visit=1, tell=lambda record: None).as_json()
    assert post(url, "/explain", asked)[1] == json.loads(json.dumps(expected))
    of_run = post(url, "/explain", {"model": "bert", "text": SENTENCES[0]})[1]
    expected = unmask.explain(str(runs / "bert"), SENTENCES[0], tell=lambda record: None).as_json()
    assert of_run == json.loads(json.dumps(expected))


def test_models_are_compared_on_one_text(url, runs):
    text = "The cat [MASK] on the mat."
    both = post(url, "/compare", {"text": text, "models": ["bert", "gpt2"]})[1]["models"]
    (expected,) = load(runs, "bert").fill(text)
    assert [one["token"] for one in both[0]["gaps"][0]] == [one.token for one in expected]
    assert both[1]["score"] == pytest.approx(float(load(runs, "gpt2").score_sentences(text)[0]), abs=1e-3)


def test_an_index_is_searched_as_by_the_api(runs, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(WORDS))
    unmask.index(runs / "vectors", tmp_path / "texts.txt", tmp_path / "idx", device="cpu", progress=False)
    made = service_of(runs, "vectors", "pairs")
    made.indexes = open_indexes([tmp_path / "idx"], made.models)
    assert made.indexes["idx"].index.model is made.models.get("vectors").model
    with running(made) as url:
        found = post(url, "/search", {"query": "a doctor", "k": 2})[1]["found"]
        again = post(url, "/search", {"query": ["a doctor"], "k": 2, "rerank": "pairs"})[1][0]["found"]
    index = unmask.open_index(tmp_path / "idx", device="cpu")
    assert [one["id"] for one in found] == [one.id for one in index.search("a doctor", k=2)]
    expected = index.search("a doctor", k=2, rerank=runs / "pairs")
    assert [one["id"] for one in again] == [one.id for one in expected]
