"""A service on a free port of this machine, with small runs."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import uvicorn

from tests.convert.parts import model_of, recipe_of, tokenizer
from unmask.infer import save_run
from unmask.serving.app import make_app
from unmask.serving.limits import Limits
from unmask.serving.models import Models
from unmask.serving.service import Service

STORED = Path(__file__).parent.parent / "runs" / "format_2"
NAMES = ("bert", "bert-classify", "gpt2")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small runs whose weights are all different."""
    folder = tmp_path_factory.mktemp("runs")
    save_run(model_of(recipe_of("bert"), tokenizer(), folder), folder / "bert")
    gpt2 = model_of(recipe_of("gpt2"), tokenizer("gpt2"), folder)
    with torch.no_grad():
        gpt2.system.backbone.embed.token.weight.mul_(3.0)  # so that some tokens are much likelier than others
    save_run(gpt2, folder / "gpt2")
    shutil.copytree(STORED / "bert-classify", folder / "bert-classify")
    return folder


@contextmanager
def running(service: Service, **options: Any) -> Iterator[str]:
    """The address of a service that answers in a thread of this process."""
    server = uvicorn.Server(uvicorn.Config(make_app(service, **options), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def service_of(runs: Path, *names: str, limits: Limits | None = None, **options: Any) -> Service:
    return Service(Models({name: runs / name for name in names}, device="cpu", **options), limits or Limits())


@pytest.fixture(scope="session")
def service(runs: Path) -> Service:
    return service_of(runs, *NAMES)


@pytest.fixture(scope="session")
def url(service: Service) -> Iterator[str]:
    with running(service) as found:
        yield found
