"""Reader: makes the rows of a data set for an arrangement; and the cursor that takes rows from a reader.

A reader makes rows in blocks. A block depends only on the seed and its place. So reading can start at any place, and a
resumed run continues with exactly the next row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from unmask.data.background import begun
from unmask.data.pack import Rows
from unmask.data.row_lengths import RowLengths
from unmask.text.columns import Column

# notes on each part of the data that was read: its track, its data set and its block. So a text that is read again counts once
Notes = dict[tuple[str, int, int], Counter[str]]


@dataclass(frozen=True)
class Place:
    """A place in the data: the next row to read."""

    visit: int = 0  # number of times the data was read completely before
    block: int = 0  # where the block begins in this visit: the number of its group, or of its first step
    row: int = 0  # the next row of the block


@dataclass(frozen=True)
class Slot:
    """Which rows of a step a reader fills."""

    source: int = 0  # number of the data set in its mixture
    first: int = 0  # number of the first of its rows in a step
    rows: int = 1  # in a step


@dataclass(frozen=True)
class Block:
    """Rows that are made together."""

    rows: Rows
    order: np.ndarray  # the order in which rows are read
    address: np.ndarray  # per row: with the visit, it determines the randomness of the row
    visit: int
    notes: Counter[str]

    def __len__(self) -> int:
        return len(self.order)

    def part(self, low: int, high: int) -> Taken:
        """Some rows, in the order in which they are read."""
        chosen = self.order[low:high]
        return Taken(self.rows.take(chosen), self.address[chosen], np.full(len(chosen), self.visit))


@dataclass(frozen=True)
class Taken:
    """Rows that were read, with the numbers that determine their randomness."""

    rows: Rows
    address: np.ndarray  # per row
    visit: np.ndarray  # per row


class Reader(Protocol):
    """One data set, arranged for one row length."""

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of the data, without entries."""

    @property
    def continuing(self) -> bool:
        """Whether row b of a step continues row b of the step before."""

    @property
    def reuse(self) -> int | None:
        """The number of tokens at the start of a row that a memory keeps; None: all."""

    @property
    def length(self) -> int:
        """The usual number of tokens in a row."""

    @property
    def lengths(self) -> RowLengths | None:
        """How the row length of each step is drawn; None: all rows have the usual length."""

    def check(self, slot: Slot) -> None:
        """Refuse a slot with more rows than the text is long enough for."""

    def block(self, place: Place, slot: Slot) -> Block:
        """The block that begins at a place."""

    def after(self, place: Place, slot: Slot) -> Place:
        """Where the next block begins."""

    def next_stage(self, place: Place, slot: Slot) -> Place:
        """Where the next stage begins. Its rows may have another length, so a block that was partly read is skipped."""


def blocks_from(reader: Reader, place: Place, slot: Slot) -> Iterator[Block]:
    """Blocks from a place on; the next one is made in the background."""
    ahead = begun(reader.block, place, slot)
    while True:
        block, place = ahead.result(), reader.after(place, slot)
        ahead = begun(reader.block, place, slot)
        yield block


class Cursor:
    """Takes rows from a reader and remembers the place of the next one."""

    def __init__(self, reader: Reader, slot: Slot, place: Place) -> None:
        self.reader, self.slot, self.place = reader, slot, place
        self.notes: dict[int, Counter[str]] = {}  # of each block; one that is read again counts once
        self._blocks = blocks_from(reader, replace(place, row=0), slot)
        self._block: Block | None = None

    def take(self, count: int) -> list[Taken]:
        """The next rows."""
        taken = []
        while count:
            if self._block is None:
                self._block = next(self._blocks)
                self.notes[self.place.block] = self._block.notes
            end = min(self.place.row + count, len(self._block))
            taken.append(self._block.part(self.place.row, end))
            count -= end - self.place.row
            self.place = replace(self.place, row=end)
            if end == len(self._block):
                self.place, self._block = self.reader.after(self.place, self.slot), None
        return taken

    def next_stage(self) -> Place:
        return self.reader.next_stage(self.place, self.slot)
