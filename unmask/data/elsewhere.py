"""Elsewhere: parts of documents, with a column that says which tokens also occur in other parts of their document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from unmask.data.arrange import TRACK, Runs, render
from unmask.data.chunks import chunks
from unmask.data.group_reader import Shuffled
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import layout as layouts
from unmask.text.columns import Column

ELSEWHERE: Final = (
    "elsewhere"  # the column: 1 if a token occurs elsewhere in its document, 0 if not, -1 on special tokens
)


@dataclass(frozen=True)
class Elsewhere(Shuffled):
    """Parts of documents of whole sentences; a column says whether each token occurs in another part (ERNIE 2.0).

    Every document has two parts or more, also if it fits a row."""

    classes = 0
    answers = ()
    packed = True

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({f"column:{ELSEWHERE}"})

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        notes: Counter[str] = Counter()
        found = chunks(texts, length - layouts.overhead(layout, 1), "elsewhere", notes, parts=2, least=2)
        require(
            len(found) > 0,
            "no document has two sentences, but 'elsewhere' compares the parts of a document: separate sentences by line "
            "breaks or full stops, or leave the task out with schedule.*.turns.{track}=0",
            track=TRACK,
        )
        spans = np.stack((found.begin, found.end), 1)
        made = render({"a": spans}, np.zeros(len(found), np.int64), layout, len(texts.ids), notes)
        return replace(made, columns={ELSEWHERE: Column(elsewhere(texts, found.begin), "value", -1)})


def elsewhere(texts: Texts, begins: np.ndarray) -> np.ndarray:
    """For each token, whether its id occurs in its document outside of its part. `begins`: the first token of each part."""
    small = texts.ids.max(initial=0) < 1 << 16
    order = np.argsort(texts.ids.astype(np.uint16) if small else texts.ids, kind="stable")  # 16 bits are sorted fast
    ids, document, part = (
        values[order]
        for values in (texts.ids, _numbers(texts.sentence[texts.document[:-1]], order), _numbers(begins, order))
    )
    # tokens with one id stand in the order of the text: first by document, then by part
    new_document, new_part = np.ones(len(order), bool), np.ones(len(order), bool)
    new_document[1:] = (ids[1:] != ids[:-1]) | (document[1:] != document[:-1])
    new_part[1:] = new_document[1:] | (part[1:] != part[:-1])
    first = np.flatnonzero(new_document)
    several = np.add.reduceat(new_part.astype(np.int32), first) > 1 if len(first) else new_document
    found = np.empty(len(order), np.int8)
    found[order] = np.repeat(several, np.diff(np.append(first, len(order))))
    return found


def _numbers(begins: np.ndarray, like: np.ndarray) -> np.ndarray:
    """For each token, how many of these places are not after it."""
    marks = np.zeros(len(like), np.int32)
    marks[begins] = 1
    return np.cumsum(marks, dtype=np.int32)
