"""Reordered: a text whose pieces are shuffled; the class is the order of the pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from unmask.data.arrange import ROLES, TRACK, Runs
from unmask.data.chunks import chunks
from unmask.data.group_reader import Shuffled
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import layout as layouts

MOST = 5  # pieces; with more, there would be too many classes


@dataclass(frozen=True)
class Reordered(Shuffled):
    """A text of whole sentences, cut into a few pieces that are shuffled; a class for each order (ERNIE 2.0).

    The number of pieces is drawn from 1 to n. There are 1! + 2! + ... + n! classes. The paper does not say what n is."""

    pieces: int = 3  # the largest number of pieces

    packed = True

    def __post_init__(self) -> None:
        require(
            2 <= self.pieces <= MOST,
            "arrange.pieces must be from 2 to {most}, got {pieces}: with more pieces there are too many orders",
            most=MOST,
            pieces=self.pieces,
        )

    @property
    def classes(self) -> int:
        return len(orders(self.pieces))

    @property
    def answers(self) -> tuple[str, ...]:
        """The order of each class: "2 3 1" is the second piece, then the third, then the first."""
        return tuple(" ".join(str(piece + 1) for piece in order) for order in orders(self.pieces))

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"labels"})

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        notes: Counter[str] = Counter()
        found = chunks(texts, length - layouts.overhead(layout, 1), "reordering", notes, parts=1, least=2)
        require(
            len(found) > 0,
            "no document has two sentences, but reordering needs them: separate sentences by line breaks or full stops, or leave the "
            "task out with schedule.*.turns.{track}=0",
            track=TRACK,
        )
        sizes = np.minimum(rng.integers(1, self.pieces + 1, len(found)), found.last - found.first)
        dice = rng.random((len(found), 2 * self.pieces))
        examples, labels = [], []
        for i, count in enumerate(sizes.tolist()):
            cuts = _cuts(texts, int(found.first[i]), int(found.last[i]), count, dice[i, : count - 1])
            edges = [int(found.begin[i]), *cuts, int(found.end[i])]
            order = tuple(np.argsort(dice[i, self.pieces : self.pieces + count], kind="stable").tolist())
            examples.append([(edges[piece], edges[piece + 1]) for piece in order])
            labels.append(orders(self.pieces).index(order))
        return _rendered(examples, labels, layout, len(texts.ids), notes)


@lru_cache
def orders(pieces: int) -> tuple[tuple[int, ...], ...]:
    """All orders of 1, 2, ... pieces; the number of an order is its class."""
    return tuple(order for count in range(1, pieces + 1) for order in permutations(range(count)))


def _cuts(texts: Texts, first: int, last: int, pieces: int, dice: np.ndarray) -> list[int]:
    """The tokens where a chunk of sentences is cut into pieces of one sentence or more."""
    chosen: list[int] = []
    for number, drawn in enumerate(dice.tolist(), 1):
        # leaves a sentence for each piece that follows
        low, high = (chosen[-1] if chosen else first) + 1, last - (pieces - number - 1) - 1
        chosen.append(low + int(drawn * (high - low + 1)))
    return [int(texts.sentence[sentence]) for sentence in chosen]


def _rendered(
    examples: list[list[tuple[int, int]]], labels: list[int], layout: str, end: int, notes: Counter[str]
) -> Runs:
    """Examples whose text has several pieces, one after another."""
    start: list[int] = []
    length: list[int] = []
    owner: list[int] = []
    summary: list[int] = []
    items, at = layouts.items(layout, 1), layouts.summary(layout, 1)
    for example, pieces in enumerate(examples):
        for place, item in enumerate(items):
            if place == at:
                summary.append(len(start))
            runs = pieces if item.is_text else [(end + ROLES.index(item.name), end + ROLES.index(item.name) + 1)]
            start += [begin for begin, _ in runs]
            length += [stop - begin for begin, stop in runs]
            owner += [example] * len(runs)
    return Runs(
        np.array(start, np.int64), np.array(length, np.int64), np.zeros(len(start), np.int64), np.array(owner, np.int64),
        np.array(summary, np.int64), np.array(labels, np.int64), notes,
    )  # fmt: skip
