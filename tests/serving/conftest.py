"""A service on a free port of this machine, with small runs."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.adapt.made import base_of, loud
from tests.browser import MISSING
from tests.convert.parts import model_of, recipe_of, tokenizer
from unmask.adapt import adapt
from unmask.adapt.adapters import Adapters
from unmask.data.examples import Text
from unmask.infer import open_run, save_run
from unmask.serving.app import make_app
from unmask.serving.limits import Limits
from unmask.serving.models import Models
from unmask.serving.run_service import listen
from unmask.serving.server import Server
from unmask.serving.service import Service
from unmask.tasks import Classify, Embed, Span, Tag
from unmask.tasks._compared import Compared
from unmask.tasks._questions import Asked
from unmask.tasks._sentences import Sentence
from unmask.tasks.classify import Example

collect_ignore = ["test_page.py"] if MISSING else []  # the summary of the tests says so
collect_ignore += [] if shutil.which("curl") else ["test_curl.py"]
STORED = Path(__file__).parent.parent / "runs" / "format_2"
NAMES = ("bert", "bert-classify", "gpt2", "tags", "span", "pairs", "vectors", "first", "second")
WORDS = ["the doctor opened the case", "every window near London", "three valves", "no evidence"]


@pytest.fixture(scope="session")
def runs(tokenizers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small runs whose weights are all different."""
    folder = tmp_path_factory.mktemp("runs")
    save_run(model_of(recipe_of("bert"), tokenizer(), folder), folder / "bert")
    gpt2 = model_of(recipe_of("gpt2"), tokenizer("gpt2"), folder)
    with torch.no_grad():
        gpt2.system.backbone.embed.token.weight.mul_(3.0)  # so that some tokens are much likelier than others
    save_run(gpt2, folder / "gpt2")
    shutil.copytree(STORED / "bert-classify", folder / "bert-classify")
    base = base_of("bert", tokenizers["wordpiece"], folder / "base")
    save_run(base, folder / "base")
    for name, task, examples, tune in _adapted():
        for _ in adapt(base, examples, folder / name, task=task, tune=tune):
            pass
    tags = open_run(folder / "tags", device="cpu")
    loud(tags.system.predict["tags"])
    save_run(tags, folder / "tags", overwrite=True)
    return folder


def _adapted() -> Iterator[tuple[str, Any, list[Any], Any]]:
    """Runs of several tasks; the last two hold only their adapters."""
    tags = [
        Sentence(tuple(text.split()), tuple("B-LOC" if word == "London" else "O" for word in text.split()))
        for text in WORDS
    ]
    yield "tags", Tag(epochs=1), tags, None
    asked = [Asked("who opened it?", WORDS[0], ("doctor",), (4, 10))] * 2
    yield "span", Span(epochs=1), asked, None
    yield (
        "pairs",
        Classify(epochs=1),
        [Example(Text(text, WORDS[0]), "01"[i % 2]) for i, text in enumerate(WORDS)],
        None,
    )
    yield "vectors", Embed(epochs=1, dims=(4,)), [Compared((WORDS[i], WORDS[i + 1])) for i in range(3)], None
    labelled = [Example(Text(text), "ab"[i % 2]) for i, text in enumerate(WORDS)]
    yield "first", Classify(epochs=2, rate=1e-2), labelled, Adapters()
    yield "second", Classify(epochs=4, rate=1e-2), labelled, Adapters()


def post(url: str, path: str, body: Any, *, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Send a request as curl does: the status and the JSON of the answer. `body`: JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"content-type": "application/json"} | (headers or {})
    request = urllib.request.Request(url + path, content, head)
    return _sent(request)


def get(url: str, path: str, *, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    return _sent(urllib.request.Request(url + path, headers=headers or {}))


def _sent(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if "json" in answer.headers["content-type"] else content.decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@contextmanager
def running(service: Service, **options: Any) -> Iterator[str]:
    """The address of a service that answers in a thread of this process."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = Server(make_app(service, **options))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive(), f"the service did not end: {_waits_for(server, thread)}"


def _waits_for(server: Server, thread: threading.Thread) -> str:
    """What a server that does not end waits for."""
    connections = [
        (one.scope and one.scope.get("path"), one.cycle and one.cycle.response_complete, one.transport.is_closing())
        for one in list(server.server_state.connections)
    ]
    frames = traceback.format_stack(sys._current_frames()[thread.ident or 0])[-3:]
    return f"connections {connections}, tasks {[repr(one) for one in server.server_state.tasks]}, at {''.join(frames)}"


def service_of(folder: Path, *names: str, limits: Limits | None = None, runs: Path | None = None) -> Service:
    return Service(Models({name: folder / name for name in names}, device="cpu", runs=runs), limits or Limits())


@pytest.fixture(scope="session")
def service(runs: Path) -> Service:
    return service_of(runs, *NAMES)


@pytest.fixture(scope="session")
def url(service: Service) -> Iterator[str]:
    with running(service) as found:
        yield found
