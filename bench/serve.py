"""The service: texts per second and milliseconds per text, with and without HTTP, beside sentence-transformers, in one run.

    python bench/serve.py [--device cpu] [--size base] [--texts 400]
    python bench/serve.py --device cuda --texts 20000
    python bench/serve.py --size tiny --texts 200        a quick check that it runs

The same BERT with fresh weights in all of them. Texts have 4 to 60 words. Throughput: `model` embeds all texts in one call;
`service` gets them by HTTP from --clients connections with --per-request texts in each request; the median of the rounds, which
are made in turn. Latency: one sentence of 30 tokens, the median and the best of 50, by the model and by HTTP in turn, in float32, and on a CPU in 8
bits (onnxruntime) and in bfloat16 (only if the CPU has the instructions). `first_answer`: seconds from the start of the process.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from embed import ours, sentences, theirs

from unmask import infer
from unmask.infer.fast import quicken
from unmask.infer.model import has_bfloat16

TIMES = 50  # that a latency is measured


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cpu")
    options.add_argument("--size", default="base")
    options.add_argument("--texts", type=int, default=400)
    options.add_argument("--clients", type=int, default=8)
    options.add_argument("--per-request", type=int, default=8)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only-latency", action="store_true", help="without throughput")
    options.add_argument("--no-peer", action="store_true", help="without sentence-transformers")
    chosen = options.parse_args()
    half = torch.device(chosen.device).type == "cuda"
    texts = sentences(chosen.texts)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "bert"
        made = ours(chosen.size, texts, chosen.device)
        infer.save_run(made, run)
        peer = (
            None if chosen.no_peer or chosen.only_latency else theirs(made, Path(folder) / "peer", chosen.device, half)
        )
        words = ["--device", chosen.device, *(["--half"] if half else [])]
        with service(run, words) as (address, first):
            model = infer.open_run(run, device=chosen.device, half=half)
            show({"first_answer": first})
            if not chosen.only_latency:
                throughput(model, address, peer, texts, chosen)
            one = sentence(model, 30)
            latency("bfloat16" if half else "float32", model, address, one)
        if chosen.device == "cpu":
            with service(run, [*words, "--fast"]) as (address, _):
                latency("int8", quicken(infer.open_run(run, device="cpu")).model, address, one)
            if has_bfloat16():
                latency("bfloat16", infer.open_run(run, device="cpu", half=True), None, one)


def throughput(model: infer.Model, address: str, peer: Any, texts: list[str], chosen: argparse.Namespace) -> None:
    ways: dict[str, Callable[[], np.ndarray]] = {
        "model": lambda: infer.embed(model, texts).value,
        "service": lambda: by_http(address, texts, chosen.clients, chosen.per_request),
    }
    if peer is not None:
        ways["sentence-transformers"] = lambda: peer.encode(texts, show_progress_bar=False)
    found = {name: np.asarray(way(), np.float32) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(chosen.rounds):
        for name, way in ways.items():
            seconds[name].append(timed(way))
    speeds = {name: len(texts) / statistics.median(times) for name, times in seconds.items()}
    far = {f"difference of {name}": float(np.abs(one - found["model"]).max()) for name, one in found.items()}
    ratios = {f"service / {name}": speeds["service"] / speed for name, speed in speeds.items() if name != "service"}
    show({"texts": len(texts), "size": chosen.size, "device": chosen.device} | speeds | ratios | far)


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


def by_http(address: str, texts: list[str], clients: int, each: int) -> np.ndarray:
    """The vectors of all texts. Every client sends its next request when it has the answer to the one before."""
    parts = [texts[begin : begin + each] for begin in range(0, len(texts), each)]
    found: list[Any] = [None] * len(parts)
    numbers = iter(range(len(parts)))

    def client() -> None:
        connection = http.client.HTTPConnection(address)
        for number in numbers:
            found[number] = ask(connection, parts[number])

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.concatenate(found)


def ask(connection: http.client.HTTPConnection, texts: list[str]) -> np.ndarray:
    body = json.dumps({"model": "bert", "input": texts, "encoding_format": "base64"}).encode()
    connection.request("POST", "/v1/embeddings", body, {"content-type": "application/json"})
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
