"""Arrange: how documents become examples. BERT's pairs, RoBERTa's blocks of full sentences, GPT's stream.

An arrangement names runs of tokens and copies nothing: `Runs` says for each run where it begins in the texts, how
long it is, and which example it belongs to. A special token is a run of length one behind the end of the texts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from unmask.data.shards import Texts
from unmask.errors import Mistake, require
from unmask.text import Tokenizer
from unmask.text import layout as layouts

ROLES = ("cls", "sep", "mask")  # the special tokens that stand behind the texts, in this order


def special_ids(tokenizer: Tokenizer, layout: str) -> list[int]:
    """The ids of ROLES; a role that the layout names must be there, the others are never used."""
    for item in layouts.items(layout, 2 if "b" in layout.split() else 1):
        if not item.is_text:
            tokenizer.role(item.name)
    return [tokenizer.roles.get(role, tokenizer.vocabulary.pad) for role in ROLES]


@dataclass(frozen=True)
class Runs:
    """Examples as runs of tokens, in order of example and place."""

    start: np.ndarray  # first token; len(texts) + i is the i-th of ROLES
    length: np.ndarray
    segment: np.ndarray
    example: np.ndarray
    summary: np.ndarray  # per example: the run that holds its summary token (its last token)
    label: np.ndarray  # per example
    notes: Counter[str] = field(default_factory=Counter)


class Arrange(Protocol):
    """What a recipe's `arrange` must be."""

    @property
    def classes(self) -> int:
        """Answers of the sentence task that comes with it; 0 for none. The head follows from this number."""

    @property
    def packed(self) -> bool:
        """Whether several examples may share a row."""

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        """Examples of at most `length` tokens."""


@dataclass(frozen=True)
class NextSentence:
    """Pairs of texts; the second follows the first, or comes from another document (BERT)."""

    random: float = 0.5  # share of pairs whose second text is drawn from another document
    short: float = 0.1  # share of pairs that aim at a random shorter length

    classes = 2  # 0: it follows; 1: it was drawn
    packed = True

    def __post_init__(self) -> None:
        for name in ("random", "short"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"arrange.{name} must be in [0, 1], got {value}: write 0.5 for half")

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        room = length - layouts.overhead(layout, 2)
        require(room >= 2, f"rows of {length} tokens leave no room for a pair in {layout!r}: use 8 or more")
        pairs = np.array(self._pairs(texts, room, rng), dtype=np.int64).reshape(-1, 5)
        a, b, label = pairs[:, 0:2].copy(), pairs[:, 2:4].copy(), pairs[:, 4]
        cut = truncate(a, b, room, rng)
        notes = Counter({"tokens cut from pairs": int(cut.sum())} if cut.any() else {})
        return render({"a": a, "b": b}, label, layout, len(texts.ids), notes)

    def _pairs(self, texts: Texts, room: int, rng: Any) -> list[tuple[int, int, int, int, int]]:
        """(a0, a1, b0, b1, label) in tokens, before truncation; the walk of BERT's paper over each document."""
        begins, first = texts.sentence.tolist(), texts.document.tolist()
        documents = len(first) - 1
        require(
            documents > 1,
            "next-sentence pairs need two documents or more: part documents by blank lines, or set arrange=Blocks",
        )
        dice = rng.random(7 * len(begins)).tolist().pop  # every round takes at most 7 and moves on by a sentence
        pairs = []
        for document in range(documents):
            i, end = first[document], first[document + 1]
            while i < end:
                target = room if dice() >= self.short else 2 + int(dice() * (room - 1))
                j = min(max(bisect_left(begins, begins[i] + target, i, end + 1), i + 1), end)
                split = i + 1 + int(dice() * (j - i - 1))
                a0, a1 = begins[i], begins[split]
                if split == j or dice() < self.random:
                    other = (document + 1 + int(dice() * (documents - 1))) % documents
                    s = first[other] + int(dice() * (first[other + 1] - first[other]))
                    stop = bisect_left(begins, begins[s] + max(target - (a1 - a0), 1), s, first[other + 1] + 1)
                    pairs.append((a0, a1, begins[s], begins[min(max(stop, s + 1), first[other + 1])], 1))
                    i = split  # the rest of the chunk goes back
                else:
                    pairs.append((a0, a1, a1, begins[j], 0))
                    i = j
        return pairs


@dataclass(frozen=True)
class Blocks:
    """Full sentences in a row until it is full; a block may run on into the next document (RoBERTa)."""

    cross: bool = True  # False: blocks end with their document (RoBERTa's DOC-SENTENCES)
    fill: bool = True  # fill the gap at the end with the head of the next sentence, which the next block repeats

    classes = 0

    @property
    def packed(self) -> bool:
        return not self.cross

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        room = length - layouts.overhead(layout, 1) + 1  # every document's part of a block carries one separator
        require(room >= 2, f"rows of {length} tokens leave no room for a sentence in {layout!r}: use 8 or more")
        begins, document, notes = _pieces(texts, room - 1)
        new = np.concatenate(([True], document[1:] != document[:-1]))
        cost = np.diff(begins) + new  # a separator for every document begun
        block = _fill(cost, new, document, room, self.cross)
        head = np.flatnonzero(np.concatenate(([True], (block[1:] != block[:-1]) | new[1:])))
        tail = np.append(head[1:], len(block))
        parts = np.stack((begins[head], begins[tail]), 1)
        if self.fill:
            self._extend(parts, block[head], texts.sentence[texts.document[document[head] + 1]], room)
        return _render_parts(parts, block[head], layout, len(texts.ids), notes)

    def _extend(self, parts: np.ndarray, block: np.ndarray, document_end: np.ndarray, room: int) -> None:
        """Let the last part of each block run on, within its document, until the block is full."""
        last = np.flatnonzero(np.append(block[1:] != block[:-1], True))
        used = np.bincount(block, weights=parts[:, 1] - parts[:, 0] + 1).astype(np.int64)
        parts[last, 1] += np.minimum(room - used, document_end[last] - parts[last, 1])


@dataclass(frozen=True)
class Stream:
    """All documents end to end, cut into full rows wherever they fall (GPT-2)."""

    classes = 0
    packed = False

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        documents = texts.sentence[texts.document]
        spans = {"a": np.stack((documents[:-1], documents[1:]), 1)}
        whole = render(spans, np.zeros(len(documents) - 1, dtype=np.int64), layout, len(texts.ids), Counter())
        return _recut(whole, length)


@dataclass(frozen=True)
class Given:
    """Examples as a task gives them; nothing is arranged."""

    classes = 0
    packed = False

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        raise Mistake(
            "this model was adapted to a task and has no pretraining data: continue from the model it came from"
        )


def truncate(a: np.ndarray, b: np.ndarray, room: int, rng: Any) -> np.ndarray:
    """Cut pairs to the room, always from the longer text: at its front or back by chance (BERT), without one at its end.

    Changes the spans; returns how many tokens each pair lost."""
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


def _pieces(texts: Texts, longest: int) -> tuple[np.ndarray, np.ndarray, Counter[str]]:
    """Sentences, the overlong ones split: where each begins (and the end), and the document of each."""
    sizes = np.diff(texts.sentence)
    parts = np.maximum(-(-sizes // longest), 1)
    split = int((parts > 1).sum())
    within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    begins = np.repeat(texts.sentence[:-1], parts) + within * longest
    document = np.repeat(np.repeat(np.arange(len(texts.document) - 1), np.diff(texts.document)), parts)
    notes = Counter({"sentences longer than a row, split": split} if split else {})
    return np.append(begins, texts.sentence[-1]), document, notes


def _fill(cost: np.ndarray, new: np.ndarray, document: np.ndarray, room: int, cross: bool) -> np.ndarray:
    """The block of each piece: as many pieces as fit, in order."""
    total = np.concatenate(([0], np.cumsum(cost)))
    # a block that begins inside a document pays that document's separator too
    limit = np.searchsorted(total, total[:-1] + room - ~new, side="right") - 1
    if not cross:
        ends = np.append(np.flatnonzero(new)[1:], len(new))
        limit = np.minimum(limit, np.repeat(ends, np.diff(np.append(np.flatnonzero(new), len(new)))))
    following, starts, at = limit.tolist(), np.zeros(len(cost), dtype=np.int64), 0
    while at < len(cost):
        starts[at] = 1
        at = max(following[at], at + 1)
    return np.cumsum(starts) - 1


def render(spans: dict[str, np.ndarray], label: np.ndarray, layout: str, end: int, notes: Counter[str]) -> Runs:
    """Examples of one or two spans each, with the special tokens of the layout."""
    items = layouts.items(layout, len(spans))
    n, k = len(label), len(items)
    start, length = np.empty((n, k), np.int64), np.ones((n, k), np.int64)
    for i, item in enumerate(items):
        if item.is_text:
            start[:, i], length[:, i] = spans[item.name][:, 0], spans[item.name][:, 1] - spans[item.name][:, 0]
        else:
            start[:, i] = end + ROLES.index(item.name)
    return Runs(
        start.ravel(), length.ravel(), np.tile([item.segment for item in items], n), np.repeat(np.arange(n), k),
        np.arange(n) * k + layouts.summary(layout, len(spans)), label, notes,
    )  # fmt: skip


def _render_parts(parts: np.ndarray, example: np.ndarray, layout: str, end: int, notes: Counter[str]) -> Runs:
    """Examples of several spans each, a separator between spans where they meet."""
    items = layouts.items(layout, 1)
    at = [item.name for item in items].index("a")
    n = int(example[-1]) + 1
    starts, lengths = [parts[:, 0]], [parts[:, 1] - parts[:, 0]]
    examples, places = [example], [2 * np.arange(len(parts)) + len(items)]  # room for what comes before and after
    joints = np.flatnonzero(example[1:] == example[:-1])
    joint_token = end + ROLES.index("sep")
    for owners, place, token in (
        (example[joints], places[0][joints] + 1, joint_token),
        *((np.arange(n), np.full(n, i if i < at else 2 * len(parts) + len(items) + i), end + ROLES.index(item.name))
          for i, item in enumerate(items) if i != at),
    ):  # fmt: skip
        starts.append(np.full(len(owners), token))
        lengths.append(np.ones(len(owners), np.int64))
        examples.append(owners)
        places.append(place)
    order = np.lexsort((np.concatenate(places), np.concatenate(examples)))
    owner = np.concatenate(examples)[order]
    first = np.searchsorted(owner, np.arange(n))
    last = np.searchsorted(owner, np.arange(n), side="right") - 1
    return Runs(
        np.concatenate(starts)[order], np.concatenate(lengths)[order], np.zeros(len(order), np.int64), owner,
        first if layouts.summary(layout, 1) == 0 else last, np.zeros(n, np.int64), notes,
    )  # fmt: skip


def _recut(whole: Runs, length: int) -> Runs:
    """The same tokens, cut anew into examples of exactly `length` (the last may be shorter)."""
    ends = np.cumsum(whole.length)
    cuts = np.union1d(ends, np.arange(length, ends[-1] + length, length).clip(max=ends[-1]))
    size = np.diff(np.concatenate(([0], cuts)))
    owner = np.searchsorted(ends, cuts, side="left")
    start = whole.start[owner] + (cuts - size - (ends[owner] - whole.length[owner]))
    example = (cuts - size) // length
    last = np.searchsorted(example, np.arange(example[-1] + 1), side="right") - 1
    return Runs(start, size, np.zeros(len(size), np.int64), example, last, np.zeros(len(last), np.int64), whole.notes)
