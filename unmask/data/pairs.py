"""Pairs of texts with a label: whether the second follows, whether they are in order, or which of three cases."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.data.arrange import Runs, render
from unmask.data.group_reader import Shuffled
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import layout as layouts

FOLLOWS, SWAPPED, DRAWN = range(3)  # where the second text of a pair comes from
CUT = "tokens left out: a pair of texts longer than a row loses the ends of its longer text, as in BERT's code"
READ = "tokens in all pairs of texts before the cut"


class Pairs(Shuffled):
    """The base of arrangements in pairs."""

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"pairs", "labels"})


@dataclass(frozen=True)
class NextSentence(Pairs):
    """Pairs of texts; the second follows the first, or comes from another document (BERT)."""

    random: float = 0.5  # share of pairs whose second text is drawn from another document
    short: float = 0.1  # share of documents whose pairs aim at a random shorter length, drawn once

    classes = 2
    answers = ("it follows", "it comes from elsewhere")
    packed = True

    def __post_init__(self) -> None:
        _check_shares(random=self.random, short=self.short)

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        walk = Walk(texts, (1 - self.random, 0.0, self.random), self.short, lonely=True)
        return walk.runs((0, -1, 1), layout, length, rng)


@dataclass(frozen=True)
class SentenceOrder(Pairs):
    """Pairs of texts that follow each other; some are swapped (ALBERT)."""

    swapped: float = 0.5  # share of pairs whose texts are swapped
    short: float = 0.1  # share of documents whose pairs aim at a random shorter length, drawn once

    classes = 2
    answers = ("in order", "swapped")
    packed = True

    def __post_init__(self) -> None:
        _check_shares(swapped=self.swapped, short=self.short)

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        walk = Walk(texts, (1 - self.swapped, self.swapped, 0.0), self.short, lonely=False)
        return walk.runs((0, 1, -1), layout, length, rng)


@dataclass(frozen=True)
class ThreeWay(Pairs):
    """Pairs of texts; the second follows the first, comes before it, or comes from another document (StructBERT)."""

    previous: float = 1 / 3  # share of pairs whose second text comes before the first
    random: float = 1 / 3  # share of pairs whose second text is drawn from another document
    short: float = 0.1  # share of documents whose pairs aim at a random shorter length, drawn once

    classes = 3
    answers = ("it follows", "it goes before", "it comes from elsewhere")
    packed = True

    def __post_init__(self) -> None:
        _check_shares(previous=self.previous, random=self.random, short=self.short)
        both = self.previous + self.random
        require(both <= 1, "arrange.previous + arrange.random must be at most 1, got {both:g}", both=both)

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        shares = (1 - self.previous - self.random, self.previous, self.random)
        return Walk(texts, shares, self.short, lonely=False).runs((0, 1, 2), layout, length, rng)


@dataclass(frozen=True)
class Walk:
    """How BERT's code makes pairs from a document: chunks of sentences, each cut in two at a random place."""

    texts: Texts
    shares: tuple[float, float, float]  # of pairs in order, swapped, and with a second text from another document
    short: float
    lonely: (
        bool  # True: a chunk of one sentence becomes a pair with a text from another document; False: it is left out
    )

    def runs(self, labels: tuple[int, int, int], layout: str, length: int, rng: Any) -> Runs:
        """Pairs as examples; `labels`: the labels of a pair in order, swapped, and with a text from another document."""
        room = length - layouts.overhead(layout, 2)
        require(
            room >= 2,
            "rows of {length} tokens leave no room for a pair in {layout!r}: use 8 or more",
            length=length,
            layout=layout,
        )
        notes: Counter[str] = Counter()
        found = np.array(self.pairs(room, rng, notes), dtype=np.int64).reshape(-1, 5)
        require(
            len(found) > 0,
            "no document has two sentences, but this sentence task needs them: separate sentences by line breaks or full "
            "stops, or set arrange=Blocks",
        )
        total = int((found[:, 1] - found[:, 0] + found[:, 3] - found[:, 2]).sum())
        a, b, how = found[:, 0:2].copy(), found[:, 2:4].copy(), found[:, 4]
        cut = truncate(a, b, room, rng)
        if cut.any():
            notes.update({CUT: int(cut.sum()), READ: total})
        swap = (how == SWAPPED)[:, None]
        spans = {"a": np.where(swap, b, a), "b": np.where(swap, a, b)}
        return render(spans, np.array(labels)[how], layout, len(self.texts.ids), notes)

    def pairs(self, room: int, rng: Any, notes: Counter[str]) -> list[tuple[int, int, int, int, int]]:
        """(a0, a1, b0, b1, how) in tokens, before truncation."""
        begins, first = self.texts.sentence.tolist(), self.texts.document.tolist()
        documents = len(first) - 1
        least = 1 if self.lonely and documents > 1 else 2  # sentences of a chunk
        require(
            documents > 1 or not self.shares[DRAWN],
            "pairs with a text from another document need two documents or more: separate documents by blank lines, or set "
            "arrange=Blocks",
        )
        # random numbers: at most 2 for each document, and at most 5 for each round; a round advances by a sentence or more
        dice = rng.random(7 * len(begins)).tolist().pop
        found = []
        for document in range(documents):
            i, end = first[document], first[document + 1]
            if end - i < least:
                notes["documents of one sentence, skipped by the sentence task"] += 1
                continue
            target = room if dice() >= self.short else 2 + int(dice() * (room - 1))  # of the whole document
            while end - i >= least:
                j = min(max(bisect_left(begins, begins[i] + target, i, end + 1), i + least), end)
                if end - j < least:  # the rest of the document would be too short for a pair
                    j = end if least > 1 else j
                split = i + 1 + int(dice() * (j - i - 1))
                a0, a1 = begins[i], begins[split]
                how = DRAWN if split == j else self._how(dice())
                if how == DRAWN:
                    other = (document + 1 + int(dice() * (documents - 1))) % documents
                    s = first[other] + int(dice() * (first[other + 1] - first[other]))
                    stop = bisect_left(begins, begins[s] + max(target - (a1 - a0), 1), s, first[other + 1] + 1)
                    found.append((a0, a1, begins[s], begins[min(max(stop, s + 1), first[other + 1])], how))
                    i = split  # the rest of the chunk is used again
                else:
                    found.append((a0, a1, a1, begins[j], how))
                    i = j
        return found

    def _how(self, drawn: float) -> int:
        if drawn < self.shares[DRAWN]:
            return DRAWN
        return SWAPPED if drawn < self.shares[DRAWN] + self.shares[SWAPPED] else FOLLOWS


def _check_shares(**shares: float) -> None:
    for name, value in shares.items():
        require(
            0 <= value <= 1, "arrange.{name} must be in [0, 1], got {value}: write 0.5 for half", name=name, value=value
        )


def truncate(a: np.ndarray, b: np.ndarray, room: int, rng: Any) -> np.ndarray:
    """Cut pairs to `room` tokens, always from the longer text: randomly at its front or end (BERT); if `rng` is None, at its
    end. Changes the spans in place; returns the number of tokens that each pair lost."""
    size_a, size_b = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]
    excess = np.maximum(size_a + size_b - room, 0)
    gap = size_a - size_b
    rest = np.maximum(excess - np.abs(gap), 0)
    cut_a = np.where(gap > 0, np.minimum(excess, gap), 0) + rest // 2
    for span, cut in ((a, cut_a), (b, excess - cut_a)):
        front = rng.binomial(cut, 0.5) if rng is not None else np.zeros_like(cut)
        span[:, 0] += front
        span[:, 1] -= cut - front
    return excess
