"""The service under more load than it can take: what is answered, what is refused, how long answers take, whether memory grows.

    python bench/serve_load.py [--run runs/bert-mine] [--seconds 60] [--times 3]
    python bench/serve_load.py --seconds 5        a quick check that it runs

First the capacity is measured with a few clients that wait for their answers. Then requests arrive at --times this rate, whether or not
earlier ones are answered, with texts of 5 to 512 tokens; half of the clients leave after a short time, and the model is loaded again in
the middle. Then 1,000 clients ask at once. At last requests arrive at the same rate again, and SIGTERM comes in the middle. Printed as
lines of JSON: the number of answers by status, percentiles of accepted ones in seconds, the bound of them (the most requests at once,
divided by the capacity, times two), memory before and after, the work that was dropped. Only 200 and 429 are right. After SIGTERM
new connections are refused, which is right too; `lost` counts the requests that were sent before and got no answer: it must be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from embed import ours, sentences

from unmask import infer

LEFT = "left"  # the client closed its connection
SAMPLES = 6  # of memory under load


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--run", type=Path, default=None, help="an encoder; by default a BERT with fresh weights")
    options.add_argument("--size", default="small", help="of that BERT; with tiny, HTTP takes more time than the model")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--times", type=float, default=3)
    options.add_argument("--requests", type=int, default=64, help="most requests at once")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = chosen.run or Path(folder) / "bert"
        if chosen.run is None:
            infer.save_run(ours(chosen.size, sentences(200), "cpu"), run)
        words = ["--port", "0", "--runs", str(run.resolve().parent), "--limit-requests", str(chosen.requests)]
        process = subprocess.Popen(
            [sys.executable, "-m", "unmask", "serve", str(run), *words],
            stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "300"},
        )  # fmt: skip
        assert process.stderr is not None
        line = next(line for line in process.stderr if "answering at" in line)
        logged: list[str] = []
        host, port = line.split("http://")[1].split(";")[0].split(":")
        threading.Thread(target=lambda: logged.extend(process.stderr or ()), daemon=True).start()
        try:
            asyncio.run(Load(host, int(port), run.resolve().name, process).go(chosen))
        finally:
            process.kill()
            process.wait()
        failed = [one for one in logged if "Traceback" in one]
        print(json.dumps({"exit": process.returncode, "tracebacks": len(failed)}))


class Load:
    """Sends requests to one service."""

    def __init__(self, host: str, port: int, name: str, process: subprocess.Popen[str]) -> None:
        self.host, self.port, self.name, self.process = host, port, name, process
        self.dice, self.words = random.Random(0), " ".join(sentences(60)).split()
        self.found: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.ended, self.lost = float("inf"), 0  # when SIGTERM was sent; requests before it without an answer

    async def go(self, chosen: argparse.Namespace) -> None:
        await self.until_ready()
        capacity = await self.capacity(min(5.0, chosen.seconds))
        before = self.memory()
        print(json.dumps({"capacity": capacity, "memory_mb": before}), flush=True)
        came = await self.arrive(capacity * chosen.times, chosen.seconds, self.reload)
        bound = 2 * chosen.requests / capacity
        self.report("load", {"bound": bound, "memory_after_mb": self.memory(), "metrics": await self.metrics()} | came)
        started = time.perf_counter()
        await asyncio.gather(*(self.ask(None) for _ in range(1_000)))
        self.report("1,000 at once", {"seconds": time.perf_counter() - started})
        await self.arrive(capacity * chosen.times, min(6.0, chosen.seconds), self.terminate)
        code = await asyncio.to_thread(self.process.wait, 60)
        self.report("SIGTERM", {"exit": code, "lost": self.lost})

    async def reload(self) -> None:
        status = await self.post("/models/load", {"model": self.name})
        print(json.dumps({"loaded again": status}), flush=True)

    async def terminate(self) -> None:
        self.ended = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)

    async def until_ready(self) -> None:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection(self.host, self.port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.1)

    async def capacity(self, seconds: float) -> float:
        """Answers per second to eight clients that wait for each answer."""
        end, done = time.perf_counter() + seconds, 0

        async def client() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await self.ask(None)
                done += 1

        await asyncio.gather(*(client() for _ in range(8)))
        self.found.clear()
        self.seconds.clear()
        return done / seconds

    async def arrive(self, rate: float, seconds: float, middle: Callable[[], Awaitable[None]]) -> dict[str, Any]:
        """Requests at this rate. `middle`: what is done after half of the time. Returns how many came, and memory over time."""
        begun, asked, memory, due, halfway = time.perf_counter(), [], [self.memory()], 0.0, False
        while (passed := time.perf_counter() - begun) < seconds:
            while due <= passed:  # a late loop sends all that are due: the rate does not depend on the answers
                asked.append(asyncio.ensure_future(self.ask(0.3 if self.dice.random() < 0.5 else None)))
                due += self.dice.expovariate(rate)
            if passed > seconds / 2 and not halfway:
                halfway = True
                asked.append(asyncio.ensure_future(middle()))
            if passed > len(memory) * seconds / SAMPLES:
                memory.append(self.memory())
            await asyncio.sleep(0.002)
        await asyncio.gather(*asked)
        return {"rate": len(asked) / seconds, "memory_mb": memory}

    async def ask(self, leaves: float | None) -> None:
        """One request. `leaves`: seconds after which the client closes the connection."""
        count = min(512, max(5, int(self.dice.lognormvariate(3.5, 1.2))))
        text = " ".join(self.dice.choices(self.words, k=max(1, count // 3)))
        began = time.perf_counter()
        asked = self.post(f"/models/{self.name}/embed", {"inputs": text, "truncate": True})
        try:
            status = await (asyncio.wait_for(asked, leaves) if leaves else asked)
        except TimeoutError:
            self.found[LEFT] += 1
            return
        self.found[status] += 1
        if not status.isdecimal() and began < self.ended:
            self.lost += 1
        if status == "200":
            self.seconds.append(time.perf_counter() - began)

    async def post(self, path: str, body: dict[str, Any]) -> str:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        writer = None
        try:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
            answer = await reader.read()
            return answer[9:12].decode() or "closed"
        except OSError as error:
            return type(error).__name__
        finally:
            if writer is not None:
                writer.transport.abort()

    async def metrics(self) -> dict[str, float]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
        names = ("unmask_dropped_texts_total", "unmask_queue_size", "unmask_request_success_total")
        return {name: float(re.findall(rf"^{name} (\S+)", page, re.M)[0]) for name in names}

    def memory(self) -> float:
        """MB; 0 after the process has ended."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1_000 for line in lines if line.startswith("VmRSS")), 0)

    def report(self, name: str, more: dict[str, Any]) -> None:
        cuts = statistics.quantiles(self.seconds, n=100) if len(self.seconds) > 1 else [0.0] * 99
        shown = {"part": name, "answers": dict(self.found), "p50": cuts[49], "p99": cuts[98]}
        print(json.dumps(shown | more | {"load": os.getloadavg()[0]}), flush=True)
        self.found.clear()
        self.seconds.clear()


if __name__ == "__main__":
    main()
