"""Blocks: documents as blocks of full sentences (RoBERTa), or end to end in full rows (GPT-2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.data.arrange import ROLES, Runs, render
from unmask.data.group_reader import Shuffled
from unmask.data.shards import Texts
from unmask.errors import UserError, require
from unmask.text import layout as layouts


@dataclass(frozen=True)
class Blocks(Shuffled):
    """Full sentences until the next one does not fit; with `cross`, a block continues in the next document (RoBERTa).

    Only a sentence that is longer than a row is cut."""

    cross: bool = True  # False: blocks end with their document (RoBERTa's DOC-SENTENCES)
    fill: bool = False  # fill the end with the start of the next sentence; the next block repeats that sentence

    classes = 0
    answers = ()

    @property
    def packed(self) -> bool:
        return not self.cross

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"unpacked rows"} if self.cross else ())

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        room = length - layouts.overhead(layout, 1) + 1  # a block has one separator for each document in it
        require(
            room >= 2,
            "rows of {length} tokens leave no room for a sentence in {layout!r}: use 8 or more",
            length=length,
            layout=layout,
        )
        begins, document, notes = _pieces(texts, room - 1)
        new = np.concatenate(([True], document[1:] != document[:-1]))
        cost = np.diff(begins) + new  # one separator for each new document
        block = _fill(cost, new, document, room, self.cross)
        head = np.flatnonzero(np.concatenate(([True], (block[1:] != block[:-1]) | new[1:])))
        tail = np.append(head[1:], len(block))
        parts = np.stack((begins[head], begins[tail]), 1)
        if self.fill:
            self._extend(parts, block[head], texts.sentence[texts.document[document[head] + 1]], room)
        return _render_parts(parts, block[head], layout, len(texts.ids), notes)

    def _extend(self, parts: np.ndarray, block: np.ndarray, document_end: np.ndarray, room: int) -> None:
        """Extend the last part of each block, within its document, until the block is full."""
        last = np.flatnonzero(np.append(block[1:] != block[:-1], True))
        used = np.bincount(block, weights=parts[:, 1] - parts[:, 0] + 1).astype(np.int64)
        parts[last, 1] += np.minimum(room - used, document_end[last] - parts[last, 1])


@dataclass(frozen=True)
class FullRows(Shuffled):
    """All documents end to end, cut into full rows at any token (GPT-2)."""

    classes = 0
    answers = ()
    packed = False

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"unpacked rows"})

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        documents = texts.sentence[texts.document]
        spans = {"a": np.stack((documents[:-1], documents[1:]), 1)}
        whole = render(spans, np.zeros(len(documents) - 1, dtype=np.int64), layout, len(texts.ids), Counter())
        return _recut(whole, length)


@dataclass(frozen=True)
class FromTask(Shuffled):
    """The examples of a task; nothing is arranged."""

    classes = 0
    answers = ()
    packed = False

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"pairs", "labels", "unpacked rows"})

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        raise UserError(
            "this model was adapted to a task and cannot be pretrained: continue from the model that was adapted"
        )


def _pieces(texts: Texts, longest: int) -> tuple[np.ndarray, np.ndarray, Counter[str]]:
    """Sentences, with those that are too long split: where each begins (and the end), and the document of each."""
    sizes = np.diff(texts.sentence)
    parts = np.maximum(-(-sizes // longest), 1)
    split = int((parts > 1).sum())
    within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    begins = np.repeat(texts.sentence[:-1], parts) + within * longest
    document = np.repeat(np.repeat(np.arange(len(texts.document) - 1), np.diff(texts.document)), parts)
    notes = Counter({"sentences longer than a row, split": split} if split else {})
    return np.append(begins, texts.sentence[-1]), document, notes


def _fill(cost: np.ndarray, new: np.ndarray, document: np.ndarray, room: int, cross: bool) -> np.ndarray:
    """The block of each piece. Each block takes as many pieces as fit, in order."""
    total = np.concatenate(([0], np.cumsum(cost)))
    # a block that begins inside a document needs a separator for that document too
    limit = np.searchsorted(total, total[:-1] + room - ~new, side="right") - 1
    if not cross:
        ends = np.append(np.flatnonzero(new)[1:], len(new))
        limit = np.minimum(limit, np.repeat(ends, np.diff(np.append(np.flatnonzero(new), len(new)))))
    following, starts, at = limit.tolist(), np.zeros(len(cost), dtype=np.int64), 0
    while at < len(cost):
        starts[at] = 1
        at = max(following[at], at + 1)
    return np.cumsum(starts) - 1


def _render_parts(parts: np.ndarray, example: np.ndarray, layout: str, end: int, notes: Counter[str]) -> Runs:
    """Examples of several spans each, with a separator between neighbouring spans."""
    items = layouts.items(layout, 1)
    at = [item.name for item in items].index("a")
    n = int(example[-1]) + 1
    starts, lengths = [parts[:, 0]], [parts[:, 1] - parts[:, 0]]
    # leaves places for the tokens before and after
    examples, places = [example], [2 * np.arange(len(parts)) + len(items)]
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
    """The same tokens, cut again into examples of exactly `length` (the last may be shorter)."""
    ends = np.cumsum(whole.length)
    cuts = np.union1d(ends, np.arange(length, ends[-1] + length, length).clip(max=ends[-1]))
    size = np.diff(np.concatenate(([0], cuts)))
    owner = np.searchsorted(ends, cuts, side="left")
    start = whole.start[owner] + (cuts - size - (ends[owner] - whole.length[owner]))
    example = (cuts - size) // length
    last = np.searchsorted(example, np.arange(example[-1] + 1), side="right") - 1
    return Runs(start, size, np.zeros(len(size), np.int64), example, last, np.zeros(len(last), np.int64), whole.notes)
