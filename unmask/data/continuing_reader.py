"""The reader of continuing rows: row b of a step continues row b of the step before.

A row depends only on (seed, visit, step, stream). The rows of several steps are made at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np

from unmask import chance
from unmask.data.arrange import special_ids
from unmask.data.concatenation import Concatenation
from unmask.data.cut_rows import Cutter, Parts, PlainRows, laid
from unmask.data.pack import Rows, join_rows, pack
from unmask.data.reader import Block, Place, Slot
from unmask.data.row_lengths import RowLengths
from unmask.data.shards import Collection
from unmask.errors import require
from unmask.text import Tokenizer
from unmask.text.columns import Column

BLOCK_TOKENS = 1 << 18  # made at once


class ContinuingReader:
    """One data set, read by a number of streams: one for each row of a step."""

    continuing = True

    def __init__(
        self, collection: Collection, tokenizer: Tokenizer, cutter: Cutter, layout: str, length: int, seed: int,
        *, shuffled: bool = True, lengths: RowLengths | None = None,
    ) -> None:  # fmt: skip
        """`lengths`: the row length is drawn for each step; None: all rows have the same length."""
        require(len(collection) > 0, "the data holds no document: prepare a corpus that has text")
        self.collection, self.length, self.seed, self.shuffled = collection, length, seed, shuffled
        self.specials, self.pad = special_ids(tokenizer, layout), tokenizer.vocabulary.pad
        self.cutter = cutter
        gap = len(self.cutter.before) + len(self.cutter.after)
        self.tokens = int(collection.lengths.sum()) + gap * len(collection)
        self.cutter.check(self.tokens)
        self.lengths = lengths
        self._drawn = lru_cache(1)(self._new_lengths)
        self._line = lru_cache(1)(self._new_line)

    @property
    def columns(self) -> dict[str, Column]:
        return self.collection.columns

    @property
    def reuse(self) -> int | None:
        return self.cutter.reuse

    @property
    def most(self) -> int:
        """The number of streams that the text is long enough for."""
        span = self.cutter.span if self.lengths is None else self.lengths.longest
        return self.tokens // span * (2 if self.cutter.both else 1)

    def stretch(self, streams: int) -> int:
        """Tokens of the text for each stream. A backward stream shares its part of the text with a forward stream."""
        return self.tokens // (-(-streams // 2) if self.cutter.both else streams)

    def steps(self, streams: int, visit: int = 0) -> int:
        """The number of rows of each stream in a visit."""
        if self.lengths is not None:
            return len(self._drawn(streams, visit))
        return max(0, (self.stretch(streams) - self.cutter.span) // self.cutter.advance + 1)

    def backward(self, streams: int) -> np.ndarray:
        """Whether each stream reads backward."""
        return np.arange(streams) % 2 == 1 if self.cutter.both else np.zeros(streams, bool)

    def check(self, slot: Slot) -> None:
        hint = f"{self.most} would fit, so lower schedule.*.rows" if self.most else "give more text"
        require(
            slot.rows <= self.most,
            (
                "{tokens:,} tokens of text are too few for {rows} streams with rows of {length} tokens: {hint}, or "
                "lower schedule.*.length"
            ),
            tokens=self.tokens,
            rows=slot.rows,
            length=self.length,
            hint=hint,
        )

    def after(self, place: Place, slot: Slot) -> Place:
        step = place.block + self._steps_at(place, slot)
        return Place(place.visit, step) if step < self.steps(slot.rows, place.visit) else Place(place.visit + 1)

    def next_stage(self, place: Place, slot: Slot) -> Place:
        """The start of the next visit, because the streams of the next stage read other parts of the text."""
        return Place(place.visit + 1) if place.block or place.row else place

    def _steps_at(self, place: Place, slot: Slot) -> int:
        """The number of steps that are made at once from a place on."""
        if self.lengths is not None:  # rows of several lengths do not fit in one array
            return 1
        most = max(1, BLOCK_TOKENS // (slot.rows * self.length))
        return min(most, self.steps(slot.rows) - place.block)

    def block(self, place: Place, slot: Slot) -> Block:
        """The rows of all streams for some steps of a visit, sorted by step and stream."""
        steps = self._steps_at(place, slot)
        stream = np.tile(np.arange(slot.rows), steps)
        step = np.repeat(place.block + np.arange(steps), slot.rows)
        address = _addresses(slot.first + stream, step)
        rows, notes = [], Counter[str]()
        backward = self.backward(slot.rows)[stream]
        cutter, length, before = self._cutter_at(place, slot)
        for line in self._lines(place.visit, backward):
            mine = backward == line.backward
            begin = self._begin(line, stream[mine], slot.rows) + before + (step[mine] - place.block) * cutter.advance
            parts = self._cut(cutter, line, begin, address[mine], place.visit)
            rows.append((mine, self._rows(line, parts, length)))
            notes += parts.notes
        flags = {"begins": step == 0} | ({"backward": backward} if self.cutter.both else {})
        merged = replace(_merged(rows), per_row=flags)
        return Block(merged, np.arange(len(step)), address, place.visit, notes)

    def _cutter_at(self, place: Place, slot: Slot) -> tuple[Cutter, int, int]:
        """How the rows of a block are cut, their length, and how many tokens of each stream are before them."""
        if self.lengths is None:
            return self.cutter, self.length, place.block * self.cutter.advance
        drawn = self._drawn(slot.rows, place.visit)
        length = int(drawn[place.block])
        return PlainRows(length, self.cutter.before, self.cutter.after), length, int(drawn[: place.block].sum())

    def _new_lengths(self, streams: int, visit: int) -> np.ndarray:
        assert self.lengths is not None
        return self.lengths.drawn(self.stretch(streams), self.seed, visit)

    def _lines(self, visit: int, backward: np.ndarray) -> list[Concatenation]:
        line = self._line(visit)
        return [line, line.reversed] if backward.any() else [line]

    def _begin(self, line: Concatenation, stream: np.ndarray, streams: int) -> np.ndarray:
        """Where in the text each stream begins."""
        stretch = self.stretch(streams)
        number = stream // 2 if self.cutter.both else stream
        return len(line) - (number + 1) * stretch if line.backward else number * stretch

    def _cut(self, cutter: Cutter, line: Concatenation, begin: np.ndarray, address: np.ndarray, visit: int) -> Parts:
        def dice(purpose: str) -> np.ndarray:
            drawn: np.ndarray = chance.draw(address, self.seed, visit, chance.purpose(purpose))
            return drawn

        return cutter.cut(line, begin, dice)

    def _rows(self, line: Concatenation, parts: Parts, length: int) -> Rows:
        pieces, runs = laid(line, parts)
        texts, start = line.read(pieces)
        return pack(texts, replace(runs, start=start), self.specials, self.pad, length, packed=False)

    def _new_line(self, visit: int) -> Concatenation:
        order = np.arange(len(self.collection))
        if self.shuffled:
            order = np.argsort(
                chance.draw(order, self.seed, visit, chance.purpose("order of documents")), kind="stable"
            )
        return Concatenation(self.collection, order, self.cutter.before, self.cutter.after)


def _addresses(stream: np.ndarray, step: np.ndarray) -> np.ndarray:
    """One number per row; with the visit, it determines the randomness of the row."""
    return (stream.astype(np.int64) << 32) + step


def _merged(parts: list[tuple[np.ndarray, Rows]]) -> Rows:
    """Merge the rows of both directions; each mask says which rows of the result are its own."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([np.flatnonzero(mask) for mask, _ in parts]))
    return join_rows([rows for _, rows in parts], {}).take(order)
