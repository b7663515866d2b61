"""What is refused and how: limits, keys, bad input; work of clients that left is dropped; models come and go."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import unmask
from tests.command import mistake
from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from tests.serving.conftest import WORDS, get, post, running, service_of
from unmask.infer import save_run
from unmask.run import WEIGHTS
from unmask.run_base import BASE
from unmask.serving import app, tei
from unmask.serving.call import MANY, as_json, as_json_in_pieces
from unmask.serving.engine import MOST_GROUPS
from unmask.serving.limits import Limits
from unmask.serving.models import Models
from unmask.serving.run_service import check_keys, listen
from unmask.serving.service import Service
from unmask.serving.trim import Trim, _resident


@pytest.fixture(scope="module")
def small(runs):
    """A service with low limits, with keys, and with a folder of runs."""
    limits = Limits(body=2_000, texts=3, generated=20, requests=4)
    made = service_of(runs, "bert", "gpt2", limits=limits, runs=runs)
    with running(made, keys=["first-key", "second-key"]) as url:
        yield url


KEY = {"authorization": "Bearer second-key"}


@pytest.mark.parametrize(
    "path,body,status,limit",
    [
        ("/embed", {"inputs": "x" * 3_000}, 413, "body"),
        ("/embed", {"inputs": ["x"] * 4}, 413, "texts"),
        ("/embed", {"inputs": [1] * 4}, 200, None),  # one text of four tokens
        ("/embed", {"inputs": "cat " * 100}, 422, "tokens"),
        ("/embed", {"inputs": "cat " * 100, "truncate": True}, 200, None),
        ("/v1/completions", {"model": "gpt2", "prompt": "a", "max_tokens": 21}, 422, "generated"),
        ("/v1/completions", {"model": "gpt2", "prompt": ["a", "b"], "n": 2}, 413, "texts"),
    ],
)
def test_a_limit_is_named(small, path, body, status, limit):
    got, answer = post(small, path, body, headers=KEY)
    assert got == status, answer
    if limit:
        named = answer["error"] if isinstance(answer["error"], dict) else answer
        assert named["limit"] == limit


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer third-key"}, {"authorization": "second-key"}])
def test_a_key_is_needed_except_for_health(small, given):
    assert post(small, "/embed", {"inputs": "a"}, headers=given)[0] == 401
    assert get(small, "/v1/models", headers=given)[0] == 401
    assert get(small, "/health", headers=given)[0] == 200


def test_other_machines_need_a_key():
    check_keys("127.0.0.1", [])
    check_keys("::1", [])
    with pytest.raises(ValueError, match="a key is needed"):
        check_keys("0.0.0.0", [])
    with pytest.raises(ValueError, match="fewer than 8"):
        check_keys("0.0.0.0", ["short"])


@pytest.mark.parametrize(
    "path,body,status,words",
    [
        ("/v1/embeddings", {"model": "brt", "input": "a"}, 404, "unknown model 'brt': the models are bert"),
        ("/v1/embeddings", {"model": "../bert", "input": "a"}, 404, "unknown model"),
        ("/v1/embeddings", {"model": "bert", "input": ""}, 422, "is empty"),
        ("/v1/embeddings", {"model": "bert", "input": [" "]}, 422, "is empty"),
        ("/v1/embeddings", {"model": "bert", "input": []}, 422, "no texts"),
        ("/v1/embeddings", {"model": "bert", "input": [[]]}, 422, "is empty"),
        ("/v1/embeddings", {"model": "bert", "input": [9_999]}, 422, "between 0 and"),
        ("/v1/embeddings", {"model": "bert", "input": [-1]}, 422, "between 0 and"),
        ("/v1/embeddings", {"model": "bert", "input": "cat " * 240_000}, 422, "tokens"),
        ("/v1/embeddings", {"model": "bert", "inptu": "a"}, 422, "did you mean input"),
        ("/v1/embeddings", {"model": "bert"}, 422, "has no 'input'"),
        ("/v1/embeddings", {"model": "bert", "input": "a", "dimensions": 3}, 422, "adapt"),
        ("/v1/embeddings", b'{"model": "bert", "input": "\xff"}', 422, "not UTF-8"),
        ("/v1/embeddings", b'{"model": "bert", "input": "\\ud800"}', 422, "half a character"),
        ("/v1/embeddings", b"[" * 100_000, 422, "nested"),
        ("/v1/embeddings", b"{", 422, "not JSON"),
        ("/v1/embeddings", b"[]", 422, "JSON object"),
        ("/v1/completions", b'{"model": "gpt2", "temperature": NaN}', 422, "NaN"),
        ("/v1/completions", b'{"model": "gpt2", "temperature": 1e999}', 422, "temperature"),
        ("/v1/completions", {"model": "gpt2", "temperature": -1}, 422, "over 0"),
        ("/v1/completions", {"model": "gpt2", "prompt": [[9_999]]}, 422, "between 0 and"),
        ("/v1/completions", {"model": "gpt2", "n": 0}, 422, "n must be"),
        ("/v1/completions", {"model": "gpt2", "best_of": 2}, 422, "not supported"),
        ("/v1/completions", {"model": "bert", "prompt": "a"}, 422, "models that can do text-generation: gpt2"),
        ("/models/gpt2/fill-mask", {"inputs": "a [MASK]"}, 422, "it can do feature-extraction, text-generation"),
        ("/models/bert/fill-mask", {"inputs": "no gap"}, 422, "no [MASK]"),
        ("/models/bert/fill-mask", {"inputs": "a [MASK]", "parameters": {"top_k": 0}}, 422, "top_k must be"),
        ("/models/bert/fill-mask", {"inputs": "a [MASK]", "parameters": {"targets": ["cat mat"]}}, 422, "one token each"),
        ("/models/pairs/answer", {"examples": ["one text"]}, 422, "but pairs reads pairs"),
        ("/models/pairs/answer", {"examples": [{"a": 1}]}, 422, "examples, line 1"),
        ("/models/pairs/answer", {"examples": [["a"], {"a": 1}]}, 422, "a text or a list of texts"),
        ("/models/first/text-classification", {"inputs": "a", "parameters": {"top_k": -1}}, 422, "top_k must be"),
        ("/models/load", {"model": "bert"}, 403, "--runs"),
        ("/explain", {"recipe": "/etc/passwd", "text": "a"}, 422, "unknown recipe"),
        ("/explain", {"recipe": "./mine.py", "text": "a"}, 422, "unknown recipe"),
        ("/explain", {"recipe": "bert", "text": "a", "settings": ["hide.budget=9"]}, 422, "budget"),
        ("/explain", {"recipe": "bert", "text": "a", "settings": ["arrange=Discourse(file='/etc/passwd')"]}, 422, "cannot be set"),
        ("/explain", {"recipe": "ernie-2", "text": "a", "settings": ["tracks.discourse.arrange.file=README"]}, 422, "cannot be set"),
        ("/explain", {"recipe": "bert", "text": "a", "settings": ["system.backbone.length=5000"]}, 422, "up to 4,096"),
        ("/explain", {"recipe": "bert", "text": "a", "settings": ["hide.units=Spans(lengths=Poisson(most=999))"]}, 422, "and 100"),
        ("/explain", {"model": "bert", "size": "tiny", "text": "a"}, 422, "leave size and variant out"),
        ("/search", {"query": "a"}, 422, "--index"),
        ("/models/bert/attention", {"text": "cat " * 200}, 422, "send a shorter one\""),
        ("/models/bert/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"cut": 1}}, 422, "unknown field of 'parameters'"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_what_to_do(url, path, body, status, words):
    got, answer = post(url, path, body)
    assert (got, words in json.dumps(answer, ensure_ascii=False)) == (status, True), answer


def test_a_mistake_in_one_request_does_not_fail_the_others_of_its_batch(url):
    texts = ["the cat [MASK]", "no gap", "a [MASK] dog", "nothing"]
    found = together([lambda text=text: post(url, "/models/bert/fill-mask", {"inputs": text})[0] for text in texts])
    assert found == [200, 422, 200, 422]


def together(calls):
    """The results of calls that are made at once."""
    found = [None] * len(calls)

    def call(number):
        found[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_an_answer_does_not_depend_on_the_batch(service, url, runs):
    """Many requests of different lengths at once: they share batches, and each gets its own answer."""
    texts = [" ".join(SENTENCES[0].split()[: 1 + number % 9]) for number in range(40)]
    before = service.metrics.texts._sum.get()
    found = together(
        [lambda text=text: post(url, "/embed", {"inputs": text, "normalize": False})[1][0] for text in texts]
    )
    assert service.metrics.texts._sum.get() == before + 40
    np.testing.assert_allclose(found, unmask.load(runs / "bert", device="cpu").embed(texts), atol=1e-5)
    asked = [{"model": "gpt2", "prompt": text, "seed": number, "max_tokens": 8} for number, text in enumerate(texts)]
    found = together([lambda one=one: post(url, "/v1/completions", one)[1]["choices"][0]["text"] for one in asked])
    gpt2 = unmask.load(runs / "gpt2", device="cpu")
    assert [text + new for text, new in zip(texts, found, strict=True)] == [
        gpt2.generate(text, tokens=8, seed=number) for number, text in enumerate(texts)
    ]


class Slow:
    """Holds the engine of a service until it is let go."""

    def __init__(self, service):
        self.go, self.begun = threading.Event(), threading.Event()
        service.engine.begin(self.steps())
        self.begun.wait(5)

    def steps(self):
        self.begun.set()
        self.go.wait(20)
        yield


def test_too_many_requests_are_told_to_come_again_and_work_of_clients_that_left_is_dropped(runs):
    made = service_of(runs, "bert", limits=Limits(requests=3), runs=runs)
    with running(made) as url:
        held = Slow(made)
        host, port = url.removeprefix("http://").split(":")
        body = json.dumps({"inputs": ["a cat", "a dog"]}).encode()
        head = f"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        clients = [socket.create_connection((host, int(port))) for _ in range(3)]
        for client in clients:
            client.sendall(head.encode() + body)
        wait_for(lambda: made.engine.size == 6)
        status, answer = post(url, "/embed", {"inputs": "x"})
        assert (status, answer["limit"]) == (429, "requests")
        assert (get(url, "/health")[0], get(url, "/metrics")[0]) == (200, 200)
        assert post(url, "/models/load", {"model": "bert"})[0] == 200  # a busy service can be changed
        for client in clients[:2]:
            client.close()
        wait_for(lambda: made.engine.size == 2)
        held.go.set()
        assert b"200 OK" in clients[2].recv(1_000)
        clients[2].close()
    assert made.metrics.dropped._value.get() == 4
    assert made.metrics.read._value.get() > 0
    assert "unmask_dropped_texts_total 4.0" in made.metrics.page().decode()


def test_a_client_that_leaves_before_its_body_is_whole_is_not_a_failure(runs, capfd):
    made = service_of(runs, "bert")
    with running(made) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
            client.sendall(head)
            wait_for(lambda: made.running == 1)
        wait_for(lambda: made.running == 0)
    assert made.metrics.failures.labels("client_left")._value.get() == 1
    assert "Traceback" not in capfd.readouterr().err


def test_a_broken_body_after_a_refusal_is_cut_off(url, caplog):
    """It was refused because of its headers, so its body is still on the way."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /embed HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        answer = client.recv(4_096)
        client.sendall(b"no chunk\r\n")
        rest = b"".join(iter(lambda: client.recv(4_096), b""))
    assert b" 415 " in answer.splitlines()[0]
    assert b" 400 " not in rest
    assert [one.message for one in caplog.records if one.exc_info] == []


def test_an_answer_that_would_fill_the_memory_is_refused(url, monkeypatch):
    monkeypatch.setattr(tei, "MOST_NUMBERS", 1_000)
    status, answer = post(url, "/embed_all", {"inputs": ["the cat sat"] * 20})
    assert (status, answer["limit"]) == (413, "numbers")
    assert post(url, "/embed_all", {"inputs": "a"})[0] == 200


@pytest.mark.parametrize(
    "value", [[], {}, [[]], [1, "a"], {"a": [{"b": None}], "c": {"d": 1.5}}, [[0.1, 2]] * 3, "医", [{"a": [[]]}]]
)
def test_json_in_pieces_is_the_same_json(value):
    assert as_json_in_pieces(value) == as_json(value)


def test_other_requests_go_on_while_a_large_answer_is_written(service, url, monkeypatch):
    """JSON of a large answer is made in a thread, in pieces."""
    made = []
    monkeypatch.setattr(
        app, "as_json_in_pieces", lambda value: (made.append(threading.current_thread()), as_json(value))[1]
    )
    assert post(url, "/embed", {"inputs": ["a cat"] * (MANY + 1)})[0] == 200
    assert post(url, "/v1/embeddings", {"model": "bert", "input": ["a cat"] * (MANY + 1)})[0] == 200
    assert post(url, "/embed", {"inputs": ["a cat"]})[0] == 200
    assert len(made) == 2
    assert all(thread.name.startswith("asyncio") for thread in made)


def test_a_body_that_never_ends_is_refused(runs, monkeypatch):
    monkeypatch.setattr(app, "BODY_SECONDS", 0.1)
    made = service_of(runs, "bert")
    with running(made) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
            client.sendall(head)
            answer = b"".join(iter(lambda: client.recv(4_096), b""))  # to the end: the connection is closed too
        assert b" 408 " in answer.splitlines()[0]
        wait_for(lambda: made.running == 0)


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_models_are_loaded_reloaded_and_unloaded_without_a_failed_answer(runs, tmp_path):
    for name in ("bert", "gpt2"):
        shutil.copytree(runs / name, tmp_path / name)
    made = service_of(tmp_path, "bert", runs=tmp_path)
    stop, failed, done = threading.Event(), [], []

    def ask(url):
        while not stop.is_set():
            status, answer = post(url, "/models/bert/embed", {"inputs": "a cat"})
            (done if status == 200 else failed).append(answer)

    with running(made) as url:
        asking = threading.Thread(target=ask, args=(url,))
        asking.start()
        before = made.models.get("bert")
        for _ in range(3):
            assert post(url, "/models/load", {"model": "bert"})[0] == 200
        assert made.models.get("bert") is not before
        assert post(url, "/models/load", {"model": "gpt2"})[1]["models"] == ["bert", "gpt2"]
        assert post(url, "/v1/completions", {"model": "gpt2", "prompt": "a"})[0] == 200
        assert post(url, "/models/unload", {"model": "gpt2"})[1]["models"] == ["bert"]
        for name in ("../gpt2", "/etc", "missing", ".", ""):
            status, answer = post(url, "/models/load", {"model": name})
            assert (status, "the runs are bert, gpt2" in answer["error"]) == (404, True)
        (tmp_path / "gpt2" / "recipe.json").write_text("{")
        status, answer = post(url, "/models/load", {"model": "gpt2"})
        assert (status, "damaged" in answer["error"], str(tmp_path) in answer["error"]) == (422, True, False)
        stop.set()
        asking.join()
    assert done
    assert not failed


def test_a_model_that_is_loaded_again_keeps_its_place(runs):
    """The first model answers the routes that name none."""
    models = service_of(runs, "bert", "gpt2", "tags", runs=runs).models
    for name in ("bert", "tags", "gpt2"):
        models.load(name)
    assert models.names() == ["bert", "gpt2", "tags"]
    models.load("span")
    models.unload("bert")
    models.load("bert")
    assert models.names() == ["gpt2", "tags", "span", "bert"]


def test_a_run_folder_may_change_while_it_is_served(runs, tmp_path, monkeypatch):
    for name in ("base", "first", "bert"):
        shutil.copytree(runs / name, tmp_path / name)
    known = json.loads((tmp_path / "first" / BASE).read_text()) | {"path": str(tmp_path / "base")}
    (tmp_path / "first" / BASE).write_text(json.dumps(known))
    made = service_of(tmp_path, "base", "first", "bert", runs=tmp_path)
    shared = weight_of(made, "base")
    assert weight_of(made, "first") is shared
    weights = tmp_path / "base" / WEIGHTS
    shutil.copy(weights, tmp_path / "again")
    (tmp_path / "again").replace(
        weights
    )  # the base is trained again: an adapter of the new one must not get the old one
    made.models.load("first")
    assert weight_of(made, "first") is not shared
    monkeypatch.chdir(tmp_path)  # a run with the name of a recipe is not that recipe
    asked = {"text": WORDS[0], "settings": ["hide.budget=0.5"]}
    with running(made) as url:
        before = [
            post(url, "/models/bert/embed", {"inputs": WORDS})[1],
            post(url, "/explain", asked | {"model": "bert"}),
        ]
        recipe = post(url, "/explain", asked | {"recipe": "bert", "size": "base"})
        os.truncate(tmp_path / "bert" / WEIGHTS, 10)
        status, answer = post(url, "/models/load", {"model": "bert"})
        assert (status, "bert" in answer["error"], str(tmp_path) in answer["error"]) == (422, True, False)
        shutil.rmtree(tmp_path / "bert")
        after = [
            post(url, "/models/bert/embed", {"inputs": WORDS})[1],
            post(url, "/explain", asked | {"model": "bert"}),
        ]
    assert after == before
    assert recipe[1]["size"] == "base"


def weight_of(service, name):
    return service.models.get(name).model.system.backbone.embed.token.weight


def test_sigterm_finishes_what_was_accepted(runs):
    words = [sys.executable, "-m", "unmask", "serve", f"mine={runs / 'gpt2'}", "--port", "0", "--device", "cpu"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"})
    try:
        line = process.stderr.readline()
        url = line.split("answering at ")[1].split(";")[0]
        assert get(url, "/health")[0] == 200  # it answers when it says so
        asked = {"model": "mine", "prompt": "a", "max_tokens": 400, "stop": ["\x00"]}
        found = []
        asking = threading.Thread(target=lambda: found.append(post(url, "/v1/completions", asked)))
        asking.start()
        wait_for(lambda: "unmask_generation_tokens_total 0.0" not in get(url, "/metrics")[1])
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as late:  # its request comes after the signal
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)  # the signal is seen within 0.1 s
            late.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b"200 OK" in late.recv(1_000)
        asking.join()
        assert process.wait(20) == 0
    finally:
        process.kill()
        said = process.stderr.read()
    assert found[0][0] == 200
    assert found[0][1]["usage"]["completion_tokens"] > 5
    logged = [json.loads(one) for one in said.splitlines() if one.startswith("{")]
    assert {"id", "route", "status", "seconds"} == set(logged[-1])
    assert '"a"' not in said  # texts are not logged


def test_what_cannot_be_served_is_said(runs, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"port {port}" in mistake("serve", runs / "bert", "--port", port)
    assert "no run at" in mistake("serve", tmp_path / "missing", "--port", 0)
    assert "is not a finished run" in mistake("serve", tmp_path, "--port", 0)
    assert "name at least one run" in mistake("serve", "--port", 0)
    assert "have the same name" in mistake("serve", runs / "bert", runs / "bert", "--port", 0)
    assert "a key is needed" in mistake("serve", runs / "bert", "--host", "0.0.0.0", "--port", 0)


def test_with_fast_encoders_have_eight_bits_and_the_others_say_why_not(runs, tmp_path):
    for name in ("bert", "gpt2"):
        shutil.copytree(runs / name, tmp_path / name)
    save_run(
        model_of(recipe_of("deberta"), tokenizer(), tmp_path), tmp_path / "deberta"
    )  # ONNX cannot hold its attention
    told, names = [], ("bert", "gpt2", "deberta")
    models = Models({name: tmp_path / name for name in names}, fast=True, tell=told.append)
    assert [one["text"].removeprefix(str(tmp_path))[:24] for one in told] == [
        "/bert in 8 bits: how wel",
        "/gpt2 stays in float32: ",
        "/deberta stays in float3",
    ]
    plain = unmask.load(runs / "bert", device="cpu").embed(SENTENCES)
    with running(Service(models)) as url:
        found = post(url, "/embed", {"inputs": SENTENCES, "normalize": False})[1]
    np.testing.assert_allclose(found, plain, atol=0.3)
    assert np.abs(np.array(found) - plain).max() > 1e-5


def test_small_answers_are_sent_at_once():
    """asyncio sets TCP_NODELAY only on sockets whose protocol is named; without it an answer takes 40 ms."""
    with listen("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP


def test_without_keys_another_name_of_this_machine_is_refused(url):
    """A page elsewhere can make its own name mean this machine; its browser then sends that name."""
    status, answer = get(url, "/v1/models", headers={"host": "evil.example:8000"})
    assert (status, "--keys" in answer["error"]["message"]) == (403, True)
    assert get(url, "/v1/models", headers={"host": "localhost"})[0] == 200


def test_few_groups_of_texts_are_generated_at_once_and_the_others_come_later(runs):
    made, seen = service_of(runs, "gpt2"), []
    asked = [{"model": "gpt2", "prompt": "The", "max_tokens": 12, "temperature": 1 + n / 10} for n in range(10)]
    run = made.engine._run
    made.engine._run = lambda batch: (run(batch), seen.append(len(made.engine._steps) + len(made.engine._begun)))
    with running(made) as url:
        held = Slow(made)
        calls = threading.Thread(
            target=lambda: seen.append(
                together([lambda one=one: post(url, "/v1/completions", one)[0] for one in asked])
            )
        )
        calls.start()
        wait_for(lambda: made.engine.size == 10)
        held.go.set()
        calls.join()
    assert seen.pop() == [200] * 10
    assert max(seen) == MOST_GROUPS


def test_memory_is_given_back_when_the_process_has_grown():
    now, size, calls = [0.0], [0], []

    def given_back(_):
        calls.append(now[0])
        size[0] = 200_000_000

    trim = Trim(lambda: now[0], lambda: size[0])
    assert trim.trim is None or trim.trim(0) in (0, 1)  # as the C library says
    trim.trim = given_back
    for now[0], size[0] in (
        (0.5, 300_000_000),  # too early
        (1.5, 300_000_000),
        (3.0, 260_000_000),  # what a pass needs
        (5.0, 270_000_000),
        (5.5, 900_000_000),  # too early
        (6.5, 900_000_000),
    ):
        trim()
    assert calls == [1.5, 5.0, 6.5]


def test_the_size_of_this_process_is_read():
    before = _resident()
    held = np.ones(100_000_000, np.uint8)
    assert 90_000_000 < _resident() - before < 200_000_000
    del held
