"""Pack: examples into rows of a fixed length, as full as they get; and rows into arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.data.arrange import Runs
from unmask.data.shards import Texts

MOST_EXAMPLES = 8  # in one row; a fixed number of places keeps shapes static


@dataclass(frozen=True)
class Rows:
    """Rows ready to become batches. The names are those of Batch; K is the number of places for examples.

    Where a task's example is read several times, it has as many rows, one after the other, and one label."""

    ids: np.ndarray  # R T
    word: np.ndarray  # R T
    sentence: np.ndarray  # R T
    example: np.ndarray  # R T
    segment: np.ndarray  # R T
    position: np.ndarray  # R T
    summary: np.ndarray  # R K, place in the row
    label: np.ndarray  # R K
    counted: np.ndarray  # R K, 0.0 on unused places
    phrase: np.ndarray | None = None  # R T; None: not prepared
    entity: np.ndarray | None = None  # R T

    def __len__(self) -> int:
        return len(self.label)


def assign(sizes: np.ndarray, length: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Best fit, longest first: the row of each example and its place among the row's examples."""
    rows, slots = np.empty(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    order = np.argsort(-sizes, kind="stable")
    smallest = int(sizes.min()) if len(sizes) else 0
    open_rows: list[list[int]] = [[] for _ in range(length + 1)]  # rows by the room left in them
    held: list[int] = []  # examples in each row
    for index, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        room = next((r for r in range(size, length + 1) if open_rows[r]), -1) if len(held) else -1
        if room < 0:
            row, room = len(held), length
            held.append(0)
        else:
            row = open_rows[room].pop()
        rows[index], slots[index] = row, held[row]
        held[row] += 1
        if room - size >= smallest and held[row] < most:
            open_rows[room - size].append(row)
    return rows, slots


def pack(texts: Texts, runs: Runs, specials: list[int], pad: int, length: int, packed: bool) -> Rows:
    """Lay the examples out in rows of `length` tokens. `specials` are the ids of `arrange.ROLES`."""
    sizes = np.bincount(runs.example, weights=runs.length).astype(np.int64)
    most = MOST_EXAMPLES if packed else 1
    row, slot = assign(sizes, length, most) if packed else (np.arange(len(sizes)), np.zeros(len(sizes), np.int64))
    sequence = np.lexsort((slot, row))  # examples in the order they are laid out
    place = np.empty(len(sizes), np.int64)
    place[sequence] = np.arange(len(sizes))
    order = np.argsort(place[runs.example], kind="stable")  # runs in the order they are laid out
    flat = _Flat(texts, runs.start[order], runs.length[order], sizes[sequence], row[sequence], slot[sequence], length)

    run_end = np.empty(len(order), np.int64)
    run_end[order] = flat.where[np.cumsum(flat.run_length) - 1] % length

    def per_example(values: np.ndarray, dtype: type) -> np.ndarray:
        out: np.ndarray = np.zeros((flat.rows, most), dtype)
        out[row, slot] = values
        return out

    return Rows(
        ids=flat.laid(np.concatenate((texts.ids, specials)).astype(np.int32)[flat.token], pad),
        word=flat.laid(flat.numbered(texts.word), -1),
        sentence=flat.laid(flat.numbered(_marks(texts)), -1),
        example=flat.laid(flat.per_token(slot[sequence].astype(np.int8)), -1),
        segment=flat.laid(np.repeat(runs.segment[order].astype(np.int8), flat.run_length), 0),
        position=flat.laid(flat.position, 0),
        summary=per_example(run_end[runs.summary], np.int64),
        label=per_example(runs.label, np.int64),
        counted=per_example(np.ones(len(sizes)), np.float32),
        phrase=None if texts.phrase is None else flat.laid(flat.numbered(texts.phrase == 1, texts.phrase > 0), -1),
        entity=None if texts.entity is None else flat.laid(flat.numbered(texts.entity == 1, texts.entity > 0), -1),
    )


class _Flat:
    """All tokens of all rows in one line, and the place in the rows that each of them goes to."""

    def __init__(
        self, texts: Texts, start: np.ndarray, run_length: np.ndarray,
        sizes: np.ndarray, row: np.ndarray, slot: np.ndarray, length: int,
    ) -> None:  # fmt: skip
        self.run_length, self.sizes, self.length = run_length, sizes, length
        self.rows = int(row[-1]) + 1 if len(row) else 0
        begin = _begin(run_length)
        count = int(run_length.sum())
        steps = np.arange(count, dtype=np.int32)
        self.token = np.repeat((start - begin).astype(np.int32), run_length) + steps
        self.special = self.token >= len(texts.ids)
        self.first = np.zeros(count, bool)  # of its run: a run always begins a new unit
        self.first[begin] = True
        example = _begin(sizes)
        self.position = steps - self.per_token(example.astype(np.int32))
        head = np.searchsorted(row, row)  # the first example of the same row
        self.where = steps + self.per_token((row * length - example[head]).astype(np.int32))
        self.row_size = np.bincount(row, weights=sizes).astype(np.int64)

    def per_token(self, values: np.ndarray) -> np.ndarray:
        """A value per example, given to each of its tokens."""
        return np.repeat(values, self.sizes)

    def laid(self, values: np.ndarray, empty: int) -> np.ndarray:
        out = np.full(self.rows * self.length, empty, values.dtype)
        out[self.where] = values
        return out.reshape(self.rows, self.length)

    def numbered(self, begins: np.ndarray, within: np.ndarray | None = None) -> np.ndarray:
        """Number the units of each row from 0, given which tokens of the texts begin one, and which are in one at all
        (None: every token); -1 on special tokens and outside."""
        new = self._of_texts(begins)
        new |= self.first
        outside = self.special if within is None else self.special | ~self._of_texts(within)
        new &= ~outside
        total = np.cumsum(new, dtype=np.int32)
        begin = _begin(self.row_size)
        before = total[begin] - new[begin]  # units of earlier rows
        total -= np.repeat(before + 1, self.row_size).astype(np.int32)
        total[outside] = -1
        return total

    def _of_texts(self, flags: np.ndarray) -> np.ndarray:
        """A flag per token of the texts, given to the tokens of the rows; False on special ones."""
        return np.append(flags, [False])[np.minimum(self.token, len(flags))]


def _marks(texts: Texts) -> np.ndarray:
    """True on the first token of each sentence."""
    marks = np.zeros(len(texts.ids), bool)
    marks[texts.sentence[:-1]] = True
    return marks


def _begin(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
