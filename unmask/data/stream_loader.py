"""The loader of streams: row b of a batch goes on with row b of the batch before it.

A row is a pure function of (seed, visit, step, stream). Rows are made for several steps at once, in the background.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from unmask import chance
from unmask.axes import Arrange
from unmask.batch import Batch
from unmask.data.arrange import special_ids
from unmask.data.background import begun
from unmask.data.concatenation import Concatenation
from unmask.data.continuing import Parts, cutter, laid
from unmask.data.loader import to_batch
from unmask.data.pack import Rows, pack
from unmask.data.shards import Collection
from unmask.errors import UserError, require
from unmask.text import Tokenizer

CHUNK_TOKENS = 1 << 18  # made at once
VALIDATION_STEPS = 4  # rows of a held-out stream, where there is text enough: a memory takes a while to fill


@dataclass(frozen=True)
class ContinuingPlace:
    """Where reading stands: the visit, and how many steps of it are done."""

    visit: int = 0
    step: int = 0


@dataclass(frozen=True)
class Chunk:
    """Rows of some steps that follow each other, in order of step and stream."""

    rows: Rows
    place: ContinuingPlace  # of the first step
    steps: int
    notes: Counter[str]

    def holds(self, place: ContinuingPlace) -> bool:
        return place.visit == self.place.visit and 0 <= place.step - self.place.step < self.steps


class ContinuingReader:
    """One data set, read by a number of streams."""

    def __init__(
        self, collection: Collection, tokenizer: Tokenizer, arrange: Arrange, layout: str, length: int, seed: int,
        *, shuffled: bool = True,
    ) -> None:  # fmt: skip
        require(len(collection) > 0, "the data holds no document")
        self.collection, self.length, self.seed, self.shuffled = collection, length, seed, shuffled
        self.specials, self.pad = special_ids(tokenizer, layout), tokenizer.vocabulary.pad
        self.cutter = cutter(arrange, layout, length)
        gap = len(self.cutter.before) + len(self.cutter.after)
        self.tokens = int(collection.lengths.sum()) + gap * len(collection)
        self.cutter.check(self.tokens)
        self._line = lru_cache(1)(self._new_line)

    @property
    def most(self) -> int:
        """How many streams the text is long enough for."""
        return self.tokens // self.cutter.span * (2 if self.cutter.both else 1)

    def stretch(self, streams: int) -> int:
        """Tokens of the line for each stream; a stream that reads backward shares its stretch with one that does not."""
        return self.tokens // (-(-streams // 2) if self.cutter.both else streams)

    def steps(self, streams: int) -> int:
        """Rows of each stream in a visit."""
        return max(0, (self.stretch(streams) - self.cutter.span) // self.cutter.advance + 1)

    def backward(self, streams: int) -> np.ndarray:
        """Whether each stream reads backward."""
        return np.arange(streams) % 2 == 1 if self.cutter.both else np.zeros(streams, bool)

    def chunk(self, place: ContinuingPlace, steps: int, streams: int, address: int) -> Chunk:
        """The rows of all streams for some steps of a visit. `address` is the number of the first stream."""
        stream = np.tile(np.arange(streams), steps)
        step = np.repeat(place.step + np.arange(steps), streams)
        rows, notes = [], Counter[str]()
        backward = self.backward(streams)[stream]
        for line in self._lines(place.visit, backward):
            mine = backward == line.backward
            begin = self._begin(line, stream[mine], streams) + step[mine] * self.cutter.advance
            parts = self._cut(line, begin, addresses(address + stream[mine], step[mine]), place)
            rows.append((mine, self._rows(line, parts)))
            notes += parts.notes
        return Chunk(_merged(rows), place, steps, notes)

    def _lines(self, visit: int, backward: np.ndarray) -> list[Concatenation]:
        line = self._line(visit)
        return [line, line.reversed] if backward.any() else [line]

    def _begin(self, line: Concatenation, stream: np.ndarray, streams: int) -> np.ndarray:
        """Where in the line each stream begins."""
        stretch = self.stretch(streams)
        number = stream // 2 if self.cutter.both else stream
        return len(line) - (number + 1) * stretch if line.backward else number * stretch

    def _cut(self, line: Concatenation, begin: np.ndarray, address: np.ndarray, place: ContinuingPlace) -> Parts:
        def dice(purpose: str) -> np.ndarray:
            drawn: np.ndarray = chance.draw(address, self.seed, place.visit, chance.purpose(purpose))
            return drawn

        return self.cutter.cut(line, begin, dice)

    def _rows(self, line: Concatenation, parts: Parts) -> Rows:
        pieces, runs = laid(line, parts)
        texts, start = line.read(pieces)
        return pack(texts, replace(runs, start=start), self.specials, self.pad, self.length, packed=False)

    def _new_line(self, visit: int) -> Concatenation:
        order = np.arange(len(self.collection))
        if self.shuffled:
            order = np.argsort(
                chance.draw(order, self.seed, visit, chance.purpose("order of documents")), kind="stable"
            )
        return Concatenation(self.collection, order, self.cutter.before, self.cutter.after)


class ContinuingCursor:
    """Takes the rows of a reader's streams step by step and remembers the place of the next one."""

    def __init__(self, reader: ContinuingReader, streams: int, address: int, place: ContinuingPlace) -> None:
        self.reader, self.streams, self.address, self.place = reader, streams, address, place
        self.notes: Counter[str] = Counter()
        self.backward = reader.backward(streams)
        self._chunks = self._from(place)
        self._chunk: Chunk | None = None

    def rows(self) -> tuple[Rows, int]:
        """The rows that hold those of this step, and which of them is the first."""
        while self._chunk is None or not self._chunk.holds(self.place):
            self._chunk = next(self._chunks)
            self.notes.update(self._chunk.notes)
        return self._chunk.rows, (self.place.step - self._chunk.place.step) * self.streams

    def advance(self) -> None:
        """Go on to the next step; all streams begin the next visit together."""
        self.place = self._after(self.place, 1)

    def _after(self, place: ContinuingPlace, steps: int) -> ContinuingPlace:
        done = place.step + steps == self.reader.steps(self.streams)
        return ContinuingPlace(place.visit + 1) if done else ContinuingPlace(place.visit, place.step + steps)

    def _from(self, place: ContinuingPlace) -> Iterator[Chunk]:
        """Chunks from a place on; the next one is made ready in the background."""
        ahead = self._begun(place)
        while True:
            chunk = ahead.result()
            ahead = self._begun(self._after(chunk.place, chunk.steps))
            yield chunk

    def _begun(self, place: ContinuingPlace) -> Future[Chunk]:
        most = max(1, CHUNK_TOKENS // (self.streams * self.reader.length))
        steps = min(most, self.reader.steps(self.streams) - place.step)
        return begun(self.reader.chunk, place, steps, self.streams, self.address)


class ContinuingLoader:
    """Endless batches of a fixed number of streams, shared out to the data sets of a mixture by weight.

    The calls of `batch` that make up a step serve the streams in order; then the next step begins. `state()` says where
    it stands; give it back to go on.
    """

    def __init__(
        self, readers: list[ContinuingReader], weights: list[float], streams: int, state: dict[str, Any] | None = None
    ) -> None:
        require(all(w > 0 for w in weights), f"the weight of a data set must be over 0, got {weights}")
        state = state or {"places": [{} for _ in readers]}
        require(
            len(state["places"]) == len(readers), "the run was started with another number of data sets: name the same"
        )
        before = state.get("streams") or streams
        require(
            before == streams,
            f"the run was started with {before} streams, got {streams}; each has a memory of its own: give the same "
            "schedule.*.rows and schedule.*.length to resume it, or start a new run",
        )
        self.streams, self.served = streams, int(state.get("served", 0))
        self.counts = shared_out(weights, streams)
        for reader, count in zip(readers, self.counts, strict=True):
            _check_room(reader, count)
        first = np.cumsum([0, *self.counts]).tolist()
        places = [ContinuingPlace(**place) for place in state["places"]]
        self.cursors = [
            ContinuingCursor(*of) for of in zip(readers, self.counts, first, places, strict=False)
        ]  # one of no stream is never asked for rows
        self.levels = {level for reader in readers for level in reader.collection.levels}
        self.both = any(reader.cutter.both for reader in readers)
        self.reuse = readers[0].cutter.reuse

    def batch(self, rows: int) -> Batch:
        """The next row of each of the next `rows` streams."""
        begin, end = self.served, self.served + rows
        if not 0 < rows <= self.streams - begin:
            raise UserError(f"{self.streams - begin} of {self.streams} streams are left in this step, got {rows} rows")
        parts = [
            (cursor, max(begin - cursor.address, 0), min(end - cursor.address, cursor.streams))
            for cursor in self.cursors
            if cursor.address < end and cursor.address + cursor.streams > begin
        ]
        batch = self._collated(parts, np.arange(begin, end))
        self.served = end % self.streams
        for cursor in self.cursors if not self.served else ():
            if cursor.streams:
                cursor.advance()
        return batch

    def _collated(self, parts: list[tuple[ContinuingCursor, int, int]], streams: np.ndarray) -> Batch:
        found = [(*cursor.rows(), low, high) for cursor, low, high in parts]

        def joined(name: str) -> np.ndarray | None:
            if name in ("phrase", "entity") and name not in self.levels:
                return None
            columns = [_column(rows, name, first + low, first + high) for rows, first, low, high in found]
            return columns[0] if len(columns) == 1 else np.concatenate(columns)

        counts = [high - low for _, low, high in parts]
        step, visit = (np.repeat([getattr(c.place, n) for c, _, _ in parts], counts) for n in ("step", "visit"))
        begins = torch.from_numpy(step == 0)
        batch = to_batch(joined, addresses(streams, step), visit.astype(np.int64)).replace(
            reuse=self.reuse, per_row={"begins": begins}
        )
        if not self.both:
            return batch
        backward = torch.from_numpy(np.concatenate([c.backward[i:j] for c, i, j in parts]))
        return batch.replace(per_row=batch.per_row | {"backward": backward})

    def state(self) -> dict[str, Any]:
        places = [asdict(cursor.place) for cursor in self.cursors]
        return {"places": places, "streams": self.streams, "served": self.served}

    def after_stage(self) -> dict[str, Any]:
        """The state to start the next row length from: streams no longer mean the same, so each set begins a visit."""
        visits = [c.place.visit + (c.place.step + self.served > 0) for c in self.cursors]
        return {"places": [asdict(ContinuingPlace(visit)) for visit in visits]}

    @property
    def visits(self) -> int:
        return max(cursor.place.visit for cursor in self.cursors)

    @property
    def notes(self) -> Counter[str]:
        return sum((cursor.notes for cursor in self.cursors), Counter())


def shared_out(weights: list[float], streams: int) -> list[int]:
    """How many streams read each data set: as near to the weights as whole streams allow."""
    wanted = np.array(weights) / sum(weights) * streams
    counts = np.floor(wanted).astype(np.int64)
    counts[np.argsort(counts - wanted, kind="stable")[: streams - counts.sum()]] += 1
    return counts.tolist()


def held_out_streams(readers: list[ContinuingReader], rows: int, most: int) -> list[Batch]:
    """A fixed set of batches to validate on, each going on where the one before it ended: at most `rows` rows in all
    and `most` in a batch."""
    readers = [reader for reader in readers if reader.most]
    if not readers:
        return []
    each = max(1, min(rows // VALIDATION_STEPS, most) // len(readers))
    while each > 1 and min(reader.steps(each) for reader in readers) < VALIDATION_STEPS:
        each -= 1
    streams = each * len(readers)
    steps = min(max(1, rows // streams), *(reader.steps(each) for reader in readers))
    loader = ContinuingLoader(readers, [1.0] * len(readers), streams)
    return [loader.batch(streams) for _ in range(steps)]


def _check_room(reader: ContinuingReader, streams: int) -> None:
    hint = f"{reader.most} would fit, so lower schedule.*.rows" if reader.most else "give more text"
    require(
        streams <= reader.most,
        f"{reader.tokens:,} tokens of text are too few for {streams} streams of rows of {reader.length} tokens: {hint}, or "
        "lower schedule.*.length",
    )


def _column(rows: Rows, name: str, low: int, high: int) -> np.ndarray:
    """Some rows of a column; where one data set of a mixture lacks it, no token is in any unit."""
    column: np.ndarray | None = getattr(rows, name)
    return np.full((high - low, rows.ids.shape[1]), -1, np.int32) if column is None else column[low:high]


def addresses(stream: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The address of the randomness of a row, beside its visit."""
    return (stream.astype(np.int64) << 32) + step


def _merged(parts: list[tuple[np.ndarray, Rows]]) -> Rows:
    """Rows of both directions, each where its mask says."""
    if len(parts) == 1:
        return parts[0][1]
    columns: dict[str, Any] = {}
    for name in (f.name for f in fields(Rows)):
        some = getattr(parts[0][1], name)
        if some is not None:
            columns[name] = np.empty((len(parts[0][0]), *some.shape[1:]), some.dtype)
            for mask, rows in parts:
                columns[name][mask] = getattr(rows, name)
    return Rows(**columns)
