"""Preparation speed: `unmask prepare` beside tokenizers.encode_batch alone, on the same text and cores; and its memory.

    python bench/prepare.py CORPUS [--kind wordpiece] [--vocab 16000] [--repeat N]

The peer tokenises the same lines from memory, with all its threads, and throws the result away. `prepare` also reads
and decompresses the files, finds sentences and words, and writes shards with checksums. --repeat N reads the corpus N
times over, to show that memory stays bounded.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unmask import text
from unmask.text.tokenizer import Tokenizer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", nargs="+")
    options.add_argument("--kind", default="wordpiece")
    options.add_argument("--vocab", type=int, default=16_000)
    options.add_argument("--repeat", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Path(folder) / "tok.json"
        text.train_to_file(text.Corpus(chosen.corpus), tokenizer, text.kind_named(chosen.kind, chosen.vocab))
        peer = alone(chosen.corpus, Tokenizer.load(tokenizer)) if chosen.repeat == 1 else None
        ours = prepared(chosen.corpus * chosen.repeat, tokenizer, Path(folder) / "data")
    if peer is not None:
        ours["tokenizers alone, seconds"] = peer
        ours["ratio"] = peer / ours["seconds"]
    print(json.dumps(ours, indent=1))


def alone(corpus: list[str], tokenizer: Tokenizer) -> float:
    """Seconds that tokenizers.encode_batch takes for all lines, in batches of 2,000."""
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    lines = [line for document in text.Corpus(corpus) for line in document.splitlines() if line.strip()]
    begin = time.perf_counter()
    for first in range(0, len(lines), 2_000):
        tokenizer.backend.encode_batch(lines[first : first + 2_000], add_special_tokens=False)
    return time.perf_counter() - begin


def prepared(corpus: list[str], tokenizer: Path, out: Path) -> dict[str, float]:
    """The command itself, as a user runs it: seconds, tokens, and the most memory that all its processes held at once."""
    command = [
        sys.executable,
        "-m",
        "unmask",
        "prepare",
        *corpus,
        "--tokenizer",
        str(tokenizer),
        "--out",
        str(out),
        "--json",
    ]
    begin = time.perf_counter()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while running.poll() is None:
        peak = max(peak, resident(running.pid))
        time.sleep(0.5)
    seconds = time.perf_counter() - begin
    assert running.stdout is not None
    result = json.loads(running.stdout.read())
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"seconds": seconds, "tokens": result["tokens"], "tokens per second": result["tokens"] / seconds,
            "peak memory of all processes, MiB": peak / 2**20, "largest process, MiB": largest}  # fmt: skip


def resident(pid: int) -> int:
    """Proportional memory of a process and its children: shared pages are counted once."""
    total = 0
    for process in [pid, *children(pid)]:
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


def children(pid: int) -> list[int]:
    try:
        return [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []


if __name__ == "__main__":
    main()
