"""Chunks: documents cut into runs of whole sentences, from which the sentence tasks of ERNIE 2.0 make their examples."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass

import numpy as np

from unmask.data.shards import Texts

TOO_FEW = "documents with too few sentences, skipped by {task}"
CUT = "tokens left out: sentences longer than their part of a row lose their ends"


@dataclass(frozen=True)
class Chunks:
    """Runs of whole sentences, in the order of the text."""

    begin: np.ndarray  # first token
    end: np.ndarray  # after the last token
    first: np.ndarray  # first sentence
    last: np.ndarray  # after the last sentence
    document: np.ndarray

    def __len__(self) -> int:
        return len(self.begin)


def chunks(texts: Texts, room: int, task: str, notes: Counter[str], *, parts: int, least: int, skip: int = 0) -> Chunks:
    """Chunks of at most `room` tokens. Each document gives `parts` of them or more, if it has enough sentences.

    Documents with fewer than `least` sentences are skipped. A sentence that is longer than `room` is cut. `skip`: the number
    of sentences at the start of each document that are left out. `task`: its name in the notes."""
    begins, documents = texts.sentence.tolist(), texts.document.tolist()
    found: list[tuple[int, int, int, int, int]] = []
    for number, (at, stop) in enumerate(zip(documents[:-1], documents[1:], strict=True)):
        if stop - at < least:
            notes[TOO_FEW.format(task=task)] += 1
            continue
        at += skip
        rest = min(parts, stop - at)
        limit = min(room, -(-(begins[stop] - begins[at]) // rest))
        while at < stop:
            # at least one sentence, and one for each chunk that must follow
            until = min(
                max(bisect_right(begins, begins[at] + limit, at, stop + 1) - 1, at + 1), stop - max(rest - 1, 0)
            )
            end = min(begins[until], begins[at] + room)
            found.append((begins[at], end, at, until, number))
            if end < begins[until]:
                notes[CUT] += begins[until] - end
            at, rest = until, rest - 1
    columns = np.array(found, dtype=np.int64).reshape(-1, 5).T
    return Chunks(*columns)
