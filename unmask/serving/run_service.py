"""Run the service: open the models, listen on a port, and finish what was accepted before the process ends."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require
from unmask.progress import Tell
from unmask.serving.limits import Limits
from unmask.serving.loopback import is_here
from unmask.serving.models import Models, named

MISSING = "the service needs starlette, uvicorn and prometheus-client: pip install 'unmask[serve]'"


def serve(
    runs: Sequence[str], *, host: str = "127.0.0.1", port: int = 8000, keys: Sequence[str] = (),
    origins: Sequence[str] = (), folder: Path | None = None, indexes: Sequence[Path] = (), limits: Limits | None = None,
    device: str | None = None, fast: bool = False, half: bool = False, tell: Tell = lambda record: None,
    ready: Callable[[str], None] = lambda url: None,
) -> None:  # fmt: skip
    """Answer requests until the process gets SIGTERM or SIGINT.

    `runs`: run folders, each as FOLDER or NAME=FOLDER. `keys`: clients must send one; needed unless `host` is this machine.
    `origins`: web pages that may read answers. `folder`: holds runs that can be loaded while it runs. `indexes`: folders of
    search indexes. `fast`, `half`, `tell`: as for `unmask.load`. `ready`: called with
    the address when requests are accepted."""
    try:
        from unmask.serving.app import make_app
        from unmask.serving.indexes import open_indexes
        from unmask.serving.server import Server
        from unmask.serving.service import Service
    except ImportError:
        raise UserError(MISSING) from None
    require(bool(runs) or folder is not None, "name at least one run, or a folder of runs with --runs")
    check_keys(host, keys)
    listening = listen(host, port)
    models = Models(named(list(runs)), device=device, runs=folder, fast=fast, half=half, tell=tell)
    service = Service(models, limits or Limits(), indexes=open_indexes(indexes, models))
    app = make_app(service, keys=keys, origins=origins, log=_log)
    shown = f"[{host}]" if ":" in host else host
    server = Server(app, lambda: ready(f"http://{shown}:{listening.getsockname()[1]}"))
    for number in (signal.SIGTERM, signal.SIGINT):  # before uvicorn takes them, and again after it has finished
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    server.run(sockets=[listening])


def check_keys(host: str, keys: Sequence[str]) -> None:
    """Refuse to be reachable from other machines without a key."""
    require(
        is_here(host) or bool(keys),
        "--host {host} can be reached from other machines, so a key is needed: give --keys FILE with a key on each line, or "
        "set UNMASK_KEYS",
        host=host,
    )
    short = next((number for number, key in enumerate(keys, 1) if len(key) < 8), None)
    require(short is None, "key number {short} has fewer than 8 characters: use a longer one", short=short)


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only if the protocol is named; otherwise each would take 40 ms
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UserError(
            "cannot listen on {host} port {port} ({error}): choose another with --port",
            host=host,
            port=port,
            error=error.strerror,
        ) from None
    return found


def _log(record: dict[str, Any]) -> None:
    sys.stderr.write(json.dumps(record) + "\n")
