"""Speed and memory of GloVe: counting the pairs of words of a corpus, and one pass of training over the table.

    python bench/glove.py CORPUS... [--dims 100] [--workers 2]

The goal: 5 MB of text a second or more on two cores, from text to the table, in less than 1 GiB of memory of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from pathlib import Path

from unmask.text import Corpus
from unmask.vectors.cooccurrence import Table, count_pairs
from unmask.vectors.word_file import Cutting, WordCounts, write_words


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", nargs="+")
    options.add_argument("--dims", type=int, default=100)
    options.add_argument("--window", type=int, default=10)
    options.add_argument("--least-count", type=int, default=5)
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    corpus = Corpus(chosen.corpus)
    counts = WordCounts()
    memory = Memory()
    with tempfile.TemporaryDirectory() as folder, memory:
        file = Path(folder) / "words"
        begin = time.perf_counter()
        for _ in write_words(corpus, Cutting(), file, counts, workers=chosen.workers):
            pass
        cut = time.perf_counter()
        words = [word for word, _ in counts.frequent(chosen.least_count)]
        *_, table = count_pairs(file, Path(folder), words, chosen.window, workers=chosen.workers)
        assert isinstance(table, Table)
        counted = time.perf_counter()
        most = memory.most
        from unmask.vectors.glove import GloVe

        model = GloVe(table, chosen.dims)
        trained = time.perf_counter()
        loss = next(model.train(1)).loss
        passed = time.perf_counter() - trained
    size, user = corpus.bytes_total / 1e6, resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {
        "MB of text": size, "words": counts.counts.total(), "vocabulary": len(words), "cells": len(table.value),
        "text to words, seconds": cut - begin, "words to table, seconds": counted - cut,
        "text to table, MB/s": size / (counted - begin), "workers' CPU seconds": user.ru_utime + user.ru_stime,
        "most memory of all processes, MiB": most, "one pass, seconds": passed,
        "one pass, million cells/s": 2 * len(table.value) / passed / 1e6, "mean loss of the pass": loss,
        "load of the machine": os.getloadavg()[0],
    }  # fmt: skip
    print(json.dumps(result, indent=1))


class Memory:
    """The largest memory of this process and its children, by looking every tenth of a second; shared pages count once."""

    def __init__(self) -> None:
        self.most, self.ended = 0.0, threading.Event()

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.ended.set()

    def _watch(self) -> None:
        while not self.ended.wait(0.1):
            self.most = max(self.most, sum(map(_size, [os.getpid(), *_children()])) / 1024)


def _children() -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _size(process: int) -> int:
    """KiB of a process; pages that it shares with others are divided among them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
