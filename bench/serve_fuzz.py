"""Random bodies for every route of a running service: no answer may be an error of the service, and it must not grow.

    unmask serve runs/bert runs/gpt2 --port 8000 &
    python bench/serve_fuzz.py http://127.0.0.1:8000 [--count 10000] [--seed 0] [--pid PID]

Eight clients send right and wrong types, odd texts and damaged JSON (`tests/serving/fuzz.py`). Printed as lines of JSON: the number of
answers by status, those with a status of 500 or more, and the memory of the process PID, if it is given.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the bodies, which the tests use too
from tests.serving.fuzz import bodies

CLIENTS = 8
PARTS = 10  # a line is printed after each


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("url", help="the address of the service")
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--pid", type=int, help="the process of the service")
    chosen = options.parse_args()
    made, found, wrong = bodies(chosen.count, chosen.seed), Counter[int](), list[tuple[str, str]]()
    for _ in range(PARTS):
        send(chosen.url, made, -(-chosen.count // PARTS), found, wrong)
        memory = {} if chosen.pid is None else {"memory_mb": memory_of(chosen.pid)}
        print(json.dumps({"sent": sum(found.values()), "answers": dict(sorted(found.items()))} | memory), flush=True)
    for path, body in wrong:
        print(json.dumps({"failed": path, "body": body[:300]}))
    sys.exit(bool(wrong))


def send(
    url: str, made: Iterator[tuple[str, bytes]], count: int, found: Counter[int], wrong: list[tuple[str, str]]
) -> None:
    """Send so many bodies by several clients, and count the answers."""
    lock, left = threading.Lock(), [count]

    def client() -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        while True:
            with lock:
                left[0] -= 1
                one = next(made, None) if left[0] >= 0 else None
            if one is None:
                return
            path, body = one
            connection.request("POST", quote(path), body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            with lock:
                found[answer.status] += 1
                if answer.status >= 500:
                    wrong.append((path, body.decode(errors="replace")))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def memory_of(pid: int) -> int:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1_000 for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
