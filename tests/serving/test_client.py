"""unmask.Client gives what the Python API gives; random bodies never make the service fail."""

import http.client
import json
from dataclasses import asdict

import numpy as np
import pytest

import unmask
from tests.convert.parts import SENTENCES
from tests.serving.conftest import NAMES, WORDS, get, running, service_of
from tests.serving.fuzz import bodies


@pytest.fixture(scope="module")
def client(url):
    return unmask.Client(url)


def test_the_client_gives_what_the_api_gives(client, runs):
    bert, gpt2, first = (unmask.load(runs / name, device="cpu") for name in ("bert", "gpt2", "first"))
    assert [one["id"] for one in client.models()] == list(NAMES)
    np.testing.assert_allclose(client.embed(SENTENCES, model="bert"), bert.embed(SENTENCES), atol=1e-5)
    found = client.predict(WORDS, model="first")
    assert [one["label"] for one in found] == [one.label for one in first.predict(WORDS)]
    text = "The [MASK] sat on [MASK]."
    assert [[one["token_str"] for one in gap] for gap in client.fill(text, model="bert")] == [
        [one.token for one in gap] for gap in bert.fill(text)
    ]
    expected = gpt2.generate(SENTENCES[0], tokens=9, seed=4)
    assert client.generate(SENTENCES[0], model="gpt2", tokens=9, seed=4) == expected
    pieces = list(client.stream(SENTENCES[0], model="gpt2", tokens=9, seed=4))
    assert "".join(pieces) == expected
    assert len(pieces) > 3
    assert client.rerank("who?", WORDS, model="pairs")[0].keys() == {"index", "score"}
    assert client.explain(SENTENCES[0], model="bert")["recipe"] == "bert"
    (one,) = client.compare("The [MASK] sat.", ["bert"])
    assert one["gaps"][0][0]["token"] == asdict(bert.fill("The [MASK] sat.")[0][0])["token"]


def test_the_client_says_what_the_service_says(client):
    with pytest.raises(ValueError, match="unknown model 'none': the models are bert"):
        client.embed("a", model="none")
    with pytest.raises(ValueError, match="--runs"):
        client.load("bert")
    with pytest.raises(ValueError, match="no service answers"):
        unmask.Client("http://127.0.0.1:1").models()


def test_random_bodies_are_answered_or_refused(url):
    host, _, port = url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    statuses = []
    for path, body in bodies(250, seed=0):
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read()) if "json" in answer.headers["content-type"] else {}
        statuses.append(answer.status)
        assert answer.status in (200, 403, 404, 413, 422, 429), (path, body, content)
    assert statuses.count(200) > 10
    assert get(url, "/health")[0] == 200


def test_there_is_a_page_and_other_addresses_are_refused(url):
    status, page = get(url, "/")
    assert (status, "<title>Unmask</title>" in page) == (200, True)
    for path in ("/nothing", "/../pyproject.toml", "/%2e%2e/app.py", "/models/bert/nothing"):
        assert get(url, path)[0] == 404
    status, answer = get(url, "/v1/embeddings")
    assert (status, "ask with POST" in answer["error"]["message"]) == (405, True)


def test_other_web_pages_may_read_answers_only_if_asked(url, runs):
    origin = {"origin": "https://example.com"}
    host = url.removeprefix("http://")
    assert allowed(host, origin) is None
    with running(service_of(runs, "bert"), origins=["https://example.com"]) as other:
        assert allowed(other.removeprefix("http://"), origin) == "https://example.com"


def allowed(host, headers):
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", "/health", headers=headers)
    return connection.getresponse().headers.get("access-control-allow-origin")
