"""The service: texts per second and milliseconds per text, with and without HTTP, beside its peers, in one run.

    python bench/serve.py [--device cpu] [--size base] [--texts 400] [--infinity OTHER_ENVIRONMENT/bin/python]
    python bench/serve.py --device cuda                  on a GPU, in about a minute
    python bench/serve.py --size tiny --texts 200        a quick check that it runs

The same BERT with fresh weights in all of them. Texts have 4 to 60 words. Throughput: `model` embeds all texts in one call;
`service` gets them by HTTP from --clients connections with --per-request texts in each request; `sentence-transformers` encodes them in one
call; `infinity` (infinity-emb, which needs an environment of its own) gets them by HTTP as the service does. The median of the
rounds, which are made in turn. Without starlette and uvicorn, `engine` stands in for `service`: the same requests, without HTTP.
Latency: one sentence of 30 tokens, the median and the best of 50, by the model and by HTTP in turn, in float32, and on a CPU in 8
bits (onnxruntime) and in bfloat16 (only if the CPU has the instructions). `http`: a request that computes nothing. `first_answer`:
seconds from the start of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from embed import ours, sentences, theirs

from unmask import infer
from unmask.infer.fast import quicken
from unmask.train import has_bfloat16

TIMES = 50  # that a latency is measured
HTTP = all(map(find_spec, ("starlette", "uvicorn", "prometheus_client", "typer")))  # whether the service can be started
OWN, INFINITY = "/v1/embeddings", "/embeddings"
Way = Callable[[], np.ndarray]


def main() -> None:
    chosen = parsed()
    half = torch.device(chosen.device).type == "cuda"
    texts = sentences(chosen.texts)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        run, peer = Path(folder) / "bert", Path(folder) / "peer"
        made = ours(chosen.size, texts, chosen.device)
        infer.save_run(made, run)
        model = infer.open_run(run, device=chosen.device, half=half)
        ways: dict[str, Way] = {"model": lambda: infer.embed(model, texts).value}
        words = ["--device", chosen.device, *(["--half"] if half else [])]
        address = None
        if HTTP:
            address, first = stack.enter_context(service(run, words))
            show({"first_answer": first, "device": device_name(chosen.device)})
            ways["service"] = lambda: by_http(address, texts, chosen.clients, chosen.per_request)
        else:
            show({"without": "starlette or uvicorn: 'engine' is the service without HTTP"})
            ways["engine"] = stack.enter_context(engine(run, texts, chosen, half))
        if not chosen.only_latency:
            if chosen.peer:
                encoder = theirs(made, peer, chosen.device, half)
                ways["sentence-transformers"] = lambda: encoder.encode(texts, show_progress_bar=False)
            if chosen.infinity:
                other = stack.enter_context(infinity(chosen.infinity, peer, chosen.device))
                ways["infinity"] = lambda: by_http(other, texts, chosen.clients, chosen.per_request, INFINITY)
            throughput(ways, texts, chosen)
        one = sentence(model, 30)
        latency("bfloat16" if half else "float32", model, address, one)
        if address is not None:
            overhead(address)
        stack.close()  # nothing else runs beside what follows
        if chosen.device == "cpu":
            fast(run, words, one)


def parsed() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu")
    options.add_argument("--size", default="base")
    options.add_argument("--texts", type=int, default=None, help="400 on a CPU, 20,000 on a GPU")
    options.add_argument("--clients", type=int, default=None, help="8 on a CPU, 32 on a GPU")
    options.add_argument("--per-request", type=int, default=None, help="texts in a request: 8 on a CPU, 64 on a GPU")
    options.add_argument("--rounds", type=int, default=None, help="3 on a CPU, 2 on a GPU")
    options.add_argument("--only-latency", action="store_true", help="without throughput")
    options.add_argument("--no-peer", dest="peer", action="store_false", help="without sentence-transformers")
    options.add_argument("--infinity", help="the python of an environment with infinity-emb[torch,server]")
    chosen = options.parse_args()
    usual = (20_000, 32, 64, 2) if torch.device(chosen.device).type == "cuda" else (400, 8, 8, 3)
    for name, value in zip(("texts", "clients", "per_request", "rounds"), usual, strict=True):
        setattr(chosen, name, getattr(chosen, name) or value)
    return chosen


def throughput(ways: dict[str, Way], texts: list[str], chosen: argparse.Namespace) -> None:
    found = {name: np.asarray(way(), np.float32) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(chosen.rounds):
        for name, way in ways.items():
            seconds[name].append(timed(way))
    speeds = {name: len(texts) / statistics.median(times) for name, times in seconds.items()}
    far = {f"difference of {name}": float(np.abs(one - found["model"]).max()) for name, one in found.items()}
    own = "service" if "service" in ways else "engine"
    ratios = {f"{own} / {name}": speeds[own] / speed for name, speed in speeds.items() if name != own}
    show({"texts": len(texts), "size": chosen.size, "device": chosen.device} | speeds | ratios | far)


def fast(run: Path, words: list[str], one: str) -> None:
    """The latency of a CPU's other precisions."""
    if HTTP:
        with service(run, [*words, "--fast"]) as (address, _):
            latency("int8", quicken(infer.open_run(run, device="cpu")).model, address, one)
    if has_bfloat16():
        latency("bfloat16", infer.open_run(run, device="cpu", half=True), None, one)


def latency(name: str, model: infer.Model, address: str | None, text: str) -> None:
    """Both ways in turn: the median, and the best one, which says more on a busy machine."""
    ways: dict[str, Callable[[], Any]] = {"model": lambda: infer.embed(model, [text])}
    if address is not None:
        connection = http.client.HTTPConnection(address)
        ways["service"] = lambda: ask(connection, [text])
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(TIMES + 5):
        for way, run in ways.items():
            took = timed(run)
            if number >= 5:  # the first ones warm up
                found[way].append(took * 1_000)
    result: dict[str, Any] = {"precision": name}
    for way, times in found.items():
        result |= {f"{way}_ms": statistics.median(times), f"{way}_best_ms": min(times)}
    show(result)


def overhead(address: str) -> None:
    """A request that computes nothing."""
    connection = http.client.HTTPConnection(address)

    def ask_health() -> None:
        connection.request("GET", "/health")
        connection.getresponse().read()

    times = [timed(ask_health) * 1_000 for _ in range(10 * TIMES)][TIMES:]
    show({"http_ms": statistics.median(times), "http_best_ms": min(times)})


@contextmanager
def service(run: Path, options: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The address of a service in a process of its own, and the seconds to its first answer."""
    began = time.perf_counter()
    words = [sys.executable, "-m", "unmask", "serve", str(run), "--port", "0", *options]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "300"})
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "answering at" in line)
        address = line.split("http://")[1].split(";")[0]
        threading.Thread(target=process.stderr.read, daemon=True).start()
        while True:
            try:
                ask(http.client.HTTPConnection(address), ["a first text"])
                break
            except OSError:
                time.sleep(0.01)
        yield address, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


@contextmanager
def infinity(python: str, folder: Path, device: str) -> Iterator[str]:
    """The address of infinity-emb with the same model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        str(Path(python).with_name("infinity_emb")),
        "v2",
        "--model-id",
        str(folder),
        "--engine",
        "torch",
        "--device",
        device,
    ]
    words += ["--port", str(port), "--host", "127.0.0.1", "--served-model-name", "bert", "--no-model-warmup"]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    off = {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=plain | off)
    try:
        for _ in range(600):
            assert process.poll() is None, "infinity-emb does not start"
            try:
                ask(http.client.HTTPConnection("127.0.0.1", port), ["a first text"], INFINITY)
                break
            except OSError:
                time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def engine(run: Path, texts: list[str], chosen: argparse.Namespace, half: bool) -> Iterator[Way]:
    """The service without HTTP: requests of several clients, with limits, batches and metrics (which may be stand-ins)."""
    lacks = find_spec("prometheus_client") is None
    if lacks:
        sys.modules["prometheus_client"] = without_metrics()
    from unmask.serving.models import Models
    from unmask.serving.service import Service

    if lacks:
        del sys.modules["prometheus_client"]
    made = Service(Models({"bert": run}, device=chosen.device, half=half))
    made.engine.start()
    served = made.models.get("bert")
    parts = [tuple(texts[begin : begin + chosen.per_request]) for begin in range(0, len(texts), chosen.per_request)]

    async def ask_all() -> np.ndarray:
        found: list[Any] = [None] * len(parts)
        numbers = iter(range(len(parts)))

        async def client() -> None:
            for number in numbers:
                ids = await made.tokens(served, parts[number], truncate=False)
                found[number] = await made.embed(served, ids)

        await asyncio.gather(*(client() for _ in range(chosen.clients)))
        return np.concatenate(found)

    yield lambda: asyncio.run(ask_all())
    made.engine.close()


class _Nothing:
    """Every method of it does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


def without_metrics() -> ModuleType:
    """Stands in for prometheus-client where it is not installed."""
    found = ModuleType("prometheus_client")
    for name in ("CollectorRegistry", "Counter", "Gauge", "Histogram", "generate_latest"):
        setattr(found, name, lambda *_, **__: _Nothing())
    return found


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if torch.device(device).type == "cuda" else device


def by_http(address: str, texts: list[str], clients: int, each: int, path: str = OWN) -> np.ndarray:
    """The vectors of all texts. Every client sends its next request when it has the answer to the one before."""
    parts = [texts[begin : begin + each] for begin in range(0, len(texts), each)]
    found: list[Any] = [None] * len(parts)
    numbers = iter(range(len(parts)))

    def client() -> None:
        connection = http.client.HTTPConnection(address)
        for number in numbers:
            found[number] = ask(connection, parts[number], path)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.concatenate(found)


def ask(connection: http.client.HTTPConnection, texts: list[str], path: str = OWN) -> np.ndarray:
    body = json.dumps({"model": "bert", "input": texts, "encoding_format": "base64"}).encode()
    connection.request("POST", path, body, {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    return np.stack([np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]])


def sentence(model: infer.Model, tokens: int) -> str:
    """A sentence of this number of tokens, special ones included."""
    words = " ".join(sentences(20)).split()
    for count in range(1, len(words)):
        found = " ".join(words[:count])
        if len(model.tokenizer.encode(found)) + 2 >= tokens:
            return found
    raise AssertionError("there are enough words")


def timed(way: Callable[[], Any]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def show(result: dict[str, Any]) -> None:
    print(json.dumps(result | {"threads": torch.get_num_threads(), "load": os.getloadavg()[0]}), flush=True)


if __name__ == "__main__":
    main()
