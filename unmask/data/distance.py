"""Distance: pairs of texts that are neighbours, that come from one document, or from two."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.data.arrange import TRACK, Runs, render
from unmask.data.chunks import chunks
from unmask.data.pairs import Pairs
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import layout as layouts

ADJACENT, SAME, OTHER = range(3)


@dataclass(frozen=True)
class Distance(Pairs):
    """Pairs of texts: neighbours, from the same document but no neighbours, or from two documents (ERNIE 2.0).

    Each class has a third of the pairs, where documents are long enough."""

    classes = 3
    answers = ("neighbours", "the same document", "two documents")
    packed = True

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        notes: Counter[str] = Counter()
        # three chunks, so that a document has two that are no neighbours
        found = chunks(texts, (length - layouts.overhead(layout, 2)) // 2, "distance", notes, parts=3, least=2)
        require(
            len(found) > 0 and found.document[0] != found.document[-1],
            "sentence distance needs two documents with two sentences or more: separate sentences by line breaks or full stops "
            "and documents by blank lines, or leave the task out with schedule.*.turns.{track}=0",
            track=TRACK,
        )
        here = np.arange(len(found))
        first = np.searchsorted(found.document, found.document)  # the first chunk of the same document
        last = np.searchsorted(found.document, found.document, side="right") - 1
        before, after = np.maximum(here - 1 - first, 0), np.maximum(last - here - 1, 0)  # chunks that are no neighbours
        label, drawn = rng.integers(0, 3, len(found)), rng.random(len(found))
        label[(label == SAME) & (before + after == 0)] = ADJACENT
        # the last chunk of a document follows the one before it
        a = np.where((label == ADJACENT) & (here == last), here - 1, here)
        turn = (drawn * (before + after)).astype(np.int64)
        apart = np.where(turn < before, first + turn, here + 2 + turn - before)
        b = np.choose(label, (a + 1, apart, _outside(first, last, drawn)))
        spans = {name: np.stack((found.begin[one], found.end[one]), 1) for name, one in (("a", a), ("b", b))}
        return render(spans, label, layout, len(texts.ids), notes)


def _outside(first: np.ndarray, last: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """For each chunk, a chunk of another document. `first`, `last`: the chunks of its own document."""
    own = last - first + 1
    place = (drawn * (len(own) - own)).astype(np.int64)
    return np.where(place >= first, place + own, place)
