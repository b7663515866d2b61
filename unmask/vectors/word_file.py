"""The words of a corpus in a file: one line for each line of the text, with a space between words; and how often each comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from unmask.data.workers import in_workers, used_workers
from unmask.errors import require
from unmask.text import Corpus, OwnWords, Words
from unmask.text.boundaries import CHINESE, SPACE, available, classes_of, codes_of, segmenter, word_starts

CHUNK = 1 << 20  # characters that are sent to a worker at a time
MOST = 4_000_000  # different words that are counted; with more, the rarest are dropped, so that memory is bounded
NEWLINE = "\n"


@dataclass(frozen=True)
class Cutting:
    """How a text is cut into words."""

    words: Words = "auto"
    own: OwnWords | None = None  # the user's words for the Chinese segmenter
    lowercase: bool = True

    def __call__(self, text: str) -> str:
        """The text with one or more spaces between its words; lines stay lines."""
        codes = codes_of(text)
        kinds = classes_of(codes)
        begins = word_starts(text, kinds, self.words, cutter=None if self.own is None else self.own.segmenter)
        spread = np.full(len(codes) + int(begins.sum()), ord(" "), dtype=np.uint32)
        spread[np.arange(len(codes)) + np.cumsum(begins)] = np.where(kinds == SPACE, ord(" "), codes)
        found = spread.tobytes().decode("utf-32-le", errors="replace")
        return found.lower() if self.lowercase else found


class WordCounts:
    """How often each word comes. When there are too many different words, those that are rarest so far are dropped."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.floor = most, 0  # words that came at most `floor` times may be missing
        self.counts: Counter[str] = Counter()

    def add(self, counts: Counter[str]) -> None:
        self.counts.update(counts)
        while len(self.counts) > self.most:
            self.floor += 1
            self.counts = Counter({word: count for word, count in self.counts.items() if count > self.floor})

    def frequent(self, least: int) -> list[tuple[str, int]]:
        """The words that come at least this often, the most frequent first; equal ones in alphabetic order."""
        found = [(word, count) for word, count in self.counts.items() if count >= least]
        return sorted(found, key=lambda entry: (-entry[1], entry[0]))


def write_words(
    corpus: Corpus, cutting: Cutting, out: Path, counts: WordCounts, *, workers: int | None = None
) -> Iterator[dict[str, Any]]:
    """Write the words of a corpus to a file and count them; yields a progress record per chunk."""
    with out.open("w", encoding="utf-8", newline=NEWLINE) as stream:
        yield from count_words(corpus, cutting, counts, stream, workers=workers)


def count_words(
    corpus: Corpus, cutting: Cutting, counts: WordCounts, stream: TextIO | None = None, *, workers: int | None = None
) -> Iterator[dict[str, Any]]:
    """Count the words of a corpus; yields a progress record per chunk. `stream`: the words are written to it, if there is one."""
    way = available(cutting.words)
    if way == "rjieba":
        segmenter()  # fail now if it is not installed
    given = Cutting(way, cutting.own, cutting.lowercase)
    words = 0
    chunks = _chunks(corpus, warn=way != cutting.words)
    for text, found in in_workers(_cut, chunks, used_workers(workers), start=_start, given=(given,)):
        if stream is not None:
            stream.write(text)
        counts.add(found)
        words += found.total()
        yield {"words": words, "done": corpus.bytes_done, "done_total": corpus.bytes_total}
    require(words > 0, "the corpus has no words: check that it holds more than white space")


def _chunks(corpus: Corpus, warn: bool) -> Iterator[str]:
    for text in map(NEWLINE.join, corpus.chunks(CHUNK)):
        if warn and CHINESE.search(text):
            corpus.notes[
                "chunks of Chinese text were read with every character as a word: pip install 'unmask[zh]'"
            ] += 1
        yield text


_worker: dict[str, Cutting] = {}  # in a worker process: the way to cut that it was started with


def _start(cutting: Cutting) -> None:
    _worker["cutting"] = cutting


def _cut(text: str) -> tuple[str, Counter[str]]:
    lines = [" ".join(line.split()) for line in _worker["cutting"](text).split(NEWLINE)]
    lines = [line for line in lines if line]
    return "".join(line + NEWLINE for line in lines), Counter(" ".join(lines).split(" ") if lines else ())
