"""curl against the routes of Text Embeddings Inference: every answer is the one that the Python API gives."""

import json
import subprocess

import numpy as np
import pytest

import unmask
from tests.convert.parts import SENTENCES
from tests.serving.conftest import WORDS
from unmask.search import rerank
from unmask.serving.hf_tasks import unit


def curl(url, path, body=None):
    """The status and the answer. Like a user's curl: the body is on the command line."""
    words = ["curl", "-s", "-w", "\n%{http_code}", url + path]
    words += [] if body is None else ["-H", "content-type: application/json", "-d", json.dumps(body)]
    answer, _, status = subprocess.run(words, capture_output=True, text=True, check=True).stdout.rpartition("\n")
    return int(status), json.loads(answer) if answer else None


@pytest.fixture(scope="module")
def load(runs):
    return lambda name: unmask.load(runs / name, device="cpu")


def test_the_routes_of_text_embeddings_inference(url, load):
    bert, vectors = load("bert"), load("bert").embed(SENTENCES)
    ask = {
        "/embed": {"inputs": SENTENCES},
        "/embed_all": {"inputs": SENTENCES[0]},
        "/predict": {"inputs": WORDS[0]},
        "/rerank": {"query": "who?", "texts": WORDS},
        "/similarity": {"inputs": {"source_sentence": SENTENCES[0], "sentences": SENTENCES[1:]}},
        "/tokenize": {"inputs": SENTENCES[0], "add_special_tokens": False},
    }
    found = {path: curl(url, path, body) for path, body in ask.items()}
    assert {status for status, _ in found.values()} == {200}
    got = {path: answer for path, (_, answer) in found.items()}
    np.testing.assert_allclose(got["/embed"], unit(vectors), atol=1e-5)
    np.testing.assert_allclose(np.mean(got["/embed_all"][0], axis=0), vectors[0], atol=1e-5)
    (label,) = load("bert-classify").predict(WORDS[0])
    assert got["/predict"][0] == {
        "label": label.label,
        "score": pytest.approx(label.probabilities[label.label], abs=1e-5),
    }
    scores = rerank(load("pairs"), "who?", WORDS)
    assert [one["index"] for one in got["/rerank"]] == sorted(range(len(WORDS)), key=lambda number: -scores[number])
    np.testing.assert_allclose(got["/similarity"], unit(vectors)[1:] @ unit(vectors)[0], atol=1e-5)
    ids = [one["id"] for one in got["/tokenize"][0]]
    assert ids == bert.tokenizer.encode(SENTENCES[0])
    assert curl(url, "/decode", {"ids": ids}) == (200, [bert.tokenizer.decode(ids)])
    assert curl(url, "/info")[1]["model_id"] == "bert"
    assert curl(url, "/health")[0] == 200


def test_a_refusal_names_the_limit(url):
    status, answer = curl(url, "/embed", {"inputs": "cat " * 200})
    assert (status, answer["error_type"], answer["limit"]) == (422, "validation", "tokens")
