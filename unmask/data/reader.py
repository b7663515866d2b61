"""Reader: what an arrangement opens, and the cursor that takes rows from one.

A reader makes rows in blocks. A block is a function of the seed and its place alone. So any place in the data is reached
at once, and a resumed run continues with the very next row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from unmask.data.background import begun
from unmask.data.pack import Rows
from unmask.text.columns import Column


@dataclass(frozen=True)
class Place:
    """Where reading stands."""

    visit: int = 0  # how often the data was read before
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
    order: np.ndarray  # in which the rows are read
    address: np.ndarray  # per row: the address of its randomness, together with the visit
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
    """Rows that were read, with what their randomness depends on."""

    rows: Rows
    address: np.ndarray  # per row
    visit: np.ndarray  # per row


class Reader(Protocol):
    """One data set, arranged for one row length."""

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of the data, without any entry."""

    @property
    def continuing(self) -> bool:
        """Whether row b of a step continues row b of the step before."""

    @property
    def reuse(self) -> int | None:
        """How many tokens of a row, its first, a memory keeps; none: all."""

    def check(self, slot: Slot) -> None:
        """Refuse more rows in a step than the text is long enough for."""

    def block(self, place: Place, slot: Slot) -> Block:
        """The block that begins at a place."""

    def after(self, place: Place, slot: Slot) -> Place:
        """Where the next block begins."""

    def next_stage(self, place: Place, slot: Slot) -> Place:
        """Where to begin with another row length: rows are cut in another way, so a block that was begun is left."""


def blocks_from(reader: Reader, place: Place, slot: Slot) -> Iterator[Block]:
    """Blocks from a place on; the next one is made ready in the background."""
    ahead = begun(reader.block, place, slot)
    while True:
        block, place = ahead.result(), reader.after(place, slot)
        ahead = begun(reader.block, place, slot)
        yield block


class Cursor:
    """Takes rows from a reader and remembers the place of the next one."""

    def __init__(self, reader: Reader, slot: Slot, place: Place) -> None:
        self.reader, self.slot, self.place = reader, slot, place
        self.notes: Counter[str] = Counter()
        self._blocks = blocks_from(reader, replace(place, row=0), slot)
        self._block: Block | None = None

    def take(self, count: int) -> list[Taken]:
        """The next rows."""
        taken = []
        while count:
            if self._block is None:
                self._block = next(self._blocks)
                self.notes.update(self._block.notes)
            end = min(self.place.row + count, len(self._block))
            taken.append(self._block.part(self.place.row, end))
            count -= end - self.place.row
            self.place = replace(self.place, row=end)
            if end == len(self._block):
                self.place, self._block = self.reader.after(self.place, self.slot), None
        return taken

    def next_stage(self) -> Place:
        return self.reader.next_stage(self.place, self.slot)
