"""The loader: endless batches from prepared data, in an order that depends only on the seed.

The rows of a step are divided among the tracks of a recipe, in order. The rows of a track come from the data sets of the
mixture in proportion to their weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch

from unmask import chance
from unmask.batch import Batch
from unmask.data.pack import Rows, join_rows
from unmask.data.reader import Cursor, Notes, Place, Reader, Slot, Taken
from unmask.errors import UserError, require
from unmask.recipe import MAIN
from unmask.text.columns import Column

TRACK_BITS = 56  # in the address of a row, the number of its track is above these bits


@dataclass(frozen=True)
class TrackReaders:
    """The data sets of a mixture as one track reads them."""

    readers: list[Reader]
    name: str = MAIN
    share: float = 1.0  # of the rows of a step
    number: int = 0  # of the track; it is part of the address, so tracks have different random draws


def track_seed(seed: int, name: str, number: int) -> int:
    """The seed of the readers of a track, so that two tracks do not read the same documents at the same time."""
    if number == 0:
        return seed
    return int(chance.draw(np.zeros(1, np.int64), seed, chance.purpose(f"track {name}"))[0])


class Portion:
    """The rows of a step that one track fills; for continuing rows, those that one data set of the track fills."""

    def __init__(self, track: TrackReaders, cursors: list[Cursor], weights: list[float], rows: int) -> None:
        self.track, self.cursors, self.rows = track, cursors, rows
        self.shares = np.array(weights) / sum(weights)
        self.counts = np.zeros(len(cursors), np.int64)  # rows taken from each data set

    def take(self, count: int) -> list[Taken]:
        """The next rows, grouped by data set."""
        turns = self._turns(count)
        return [taken for cursor, turn in zip(self.cursors, turns, strict=True) for taken in cursor.take(turn)]

    def _turns(self, rows: int) -> list[int]:
        """How many of the next rows come from each data set: always as close to the shares as whole rows allow."""
        turns = np.zeros(len(self.cursors), np.int64)
        for _ in range(rows if len(turns) > 1 else 0):
            behind = self.shares * (self.counts.sum() + 1) - self.counts
            best = int(np.argmax(behind))
            turns[best] += 1
            self.counts[best] += 1
        if len(turns) == 1:
            turns[0] = rows
            self.counts[0] += rows
        return turns.tolist()


class Loader:
    """Endless batches. `state()` returns the current place; pass it as `state` to continue there.

    If tracks share a step, or rows continue, the calls of `batch` within a step return its rows in order."""

    def __init__(
        self, tracks: list[TrackReaders], weights: list[float], rows: int, state: dict[str, Any] | None = None
    ) -> None:
        require(all(w > 0 for w in weights), "the weight of a data set must be over 0, got {weights}", weights=weights)
        _check_tracks(tracks)
        readers = [reader for track in tracks for reader in track.readers]
        state = state or {"places": [{} for _ in readers]}
        require(
            len(state["places"]) == len(readers),
            "the run was started with another number of data sets: name the same data sets",
        )
        places = [Place(**place) for place in state["places"]]
        self.rows, self.served, self.named = rows, int(state.get("served", 0)), len(tracks) > 1
        self.columns, self.reuse = _columns(readers), readers[0].reuse
        self.length, self.drawn = readers[0].length, readers[0].lengths is not None  # whether row lengths are random
        self.portions = _portions(tracks, weights, rows, places)
        self.ordered = len(self.portions) > 1 or readers[0].continuing  # whether each row has a fixed place in a step
        self._resume(state)

    def _resume(self, state: dict[str, Any]) -> None:
        counts = iter(state.get("counts", []))
        for portion in self.portions:
            portion.counts[:] = [next(counts, 0) for _ in portion.cursors]
        before = state.get("rows") or self.rows
        require(
            not self.ordered or before == self.rows,
            (
                "the run was started with {before} rows in a step, got {rows}, and each row of a step has its own "
                "memory or track: give the same schedule.*.rows and schedule.*.length to resume it, or start a new "
                "run"
            ),
            before=before,
            rows=self.rows,
        )

    @property
    def cursors(self) -> list[Cursor]:
        return [cursor for portion in self.portions for cursor in portion.cursors]

    def batch(self, rows: int) -> Batch:
        """The next rows."""
        taken = [(portion.track, part) for portion, count in self._counts(rows) for part in portion.take(count)]
        address = np.concatenate([part.address + (track.number << TRACK_BITS) for track, part in taken])
        visit = np.concatenate([part.visit for _, part in taken])
        batch = to_batch(join_rows([part.rows for _, part in taken], self.columns), address, visit)
        pace = batch.shape[1] / self.length if self.drawn else 1.0
        return batch.replace(reuse=self.reuse, pace=pace, tracks=_tracks(taken) if self.named else ())

    def _counts(self, rows: int) -> list[tuple[Portion, int]]:
        """How many of the next rows each portion gives."""
        if not self.ordered:
            return [(self.portions[0], rows)]
        begin, end = self.served, self.served + rows
        if not 0 < rows <= self.rows - begin:
            raise UserError(
                "this step has {rows} of its {rows_2} rows left, got {rows_3}: ask for that many or fewer",
                rows=self.rows - begin,
                rows_2=self.rows,
                rows_3=rows,
            )
        first = np.cumsum([0, *(portion.rows for portion in self.portions)])
        counts = (np.minimum(end, first[1:]) - np.maximum(begin, first[:-1])).tolist()
        self.served = end % self.rows
        return [(portion, count) for portion, count in zip(self.portions, counts, strict=True) if count > 0]

    def state(self) -> dict[str, Any]:
        step = {"rows": self.rows, "served": self.served} if self.ordered else {}
        return {"places": [asdict(cursor.place) for cursor in self.cursors], "counts": self._taken()} | step

    def after_stage(self) -> dict[str, Any]:
        """The state from which the next stage starts."""
        return {"places": [asdict(cursor.next_stage()) for cursor in self.cursors], "counts": self._taken()}

    def _taken(self) -> list[int]:
        return [count for portion in self.portions for count in portion.counts.tolist()]

    @property
    def visits(self) -> int:
        return max(cursor.place.visit for cursor in self.cursors)

    @property
    def notes(self) -> Notes:
        cursors = [(portion.track.name, cursor) for portion in self.portions for cursor in portion.cursors]
        return {
            (track, cursor.slot.source, block): notes
            for track, cursor in cursors
            for block, notes in cursor.notes.items()
        }


def _portions(tracks: list[TrackReaders], weights: list[float], rows: int, places: list[Place]) -> list[Portion]:
    """The portions of a step, in order: one for each track; for continuing rows, one for each data set of a track."""
    found, first, waiting = [], 0, iter(places)
    for track, count in zip(tracks, shared_out([track.share for track in tracks], rows), strict=True):
        cursors = [Cursor(reader, slot, next(waiting)) for reader, slot in _slots(track, weights, count, first)]
        if track.readers[0].continuing:
            found += [Portion(track, [cursor], [1.0], cursor.slot.rows) for cursor in cursors]
        else:
            found.append(Portion(track, cursors, weights, count))
        first += count
    return found


def _slots(track: TrackReaders, weights: list[float], rows: int, first: int) -> Iterator[tuple[Reader, Slot]]:
    """Which rows of a step each reader of a track fills. Rows that do not continue may all come from one reader."""
    each = shared_out(weights, rows) if track.readers[0].continuing else [rows] * len(weights)
    for source, (reader, mine) in enumerate(zip(track.readers, each, strict=True)):
        slot = Slot(source, first + sum(each[:source]), mine)
        reader.check(slot)
        yield reader, slot


def shared_out(shares: list[float], rows: int) -> list[int]:
    """The number of rows for each share: as close to the shares as whole rows allow; the largest remainders are rounded up."""
    wanted = np.array(shares) / sum(shares) * rows
    counts = np.floor(wanted).astype(np.int64)
    counts[np.argsort(counts - wanted, kind="stable")[: rows - counts.sum()]] += 1
    return counts.tolist()


def _check_tracks(tracks: list[TrackReaders]) -> None:
    """Refuse tracks that cannot share a batch: a batch has one memory."""
    readers = [(track.name, reader) for track in tracks for reader in track.readers]
    first, main = readers[0]
    for name, reader in readers:
        require(
            reader.continuing == main.continuing and reader.reuse == main.reuse,
            (
                "the tracks {first!r} and {name!r} share each batch, so a memory must keep the same part of their "
                "rows, but their arrangements differ: set tracks.{name}.arrange=None, or give both tracks "
                "arrangements without continuing rows"
            ),
            first=first,
            name=name,
        )
        require(
            main.lengths is None or len(readers) == 1,
            "rows of random length need one data set and one track, because all rows of a step have one length, got {count}: "
            "prepare all texts as one data set, or set arrange=ContinuingRows(deviation=0.0, half=0.0)",
            count=len(readers),
        )


def _columns(readers: list[Reader]) -> dict[str, Column]:
    """The columns of all readers. Readers with the same column must agree on its kind, shape and fill value."""
    found: dict[str, Column] = {}
    for reader in readers:
        for name, column in reader.columns.items():
            known = found.setdefault(name, column)
            require(
                (known.kind, known.shape, known.fill) == (column.kind, column.shape, column.fill),
                ("the data sets differ in the column {name!r}: {record} and {record_2}: prepare them in the same way"),
                name=name,
                record=known.record,
                record_2=column.record,
            )
    return found


def _tracks(taken: list[tuple[TrackReaders, Taken]]) -> tuple[tuple[str, int], ...]:
    """The tracks of these rows, in order, and the number of rows of each."""
    groups = groupby(taken, key=lambda one: one[0].name)
    return tuple((name, sum(len(part.address) for _, part in parts)) for name, parts in groups)


def to_batch(rows: Rows, address: np.ndarray, visit: np.ndarray) -> Batch:
    """Rows as a batch. `address` and `visit`: per row, they determine its randomness."""
    length = rows.ids.shape[1]
    summary = rows.summary.reshape(len(rows.ids), -1) + np.arange(len(rows.ids))[:, None] * length
    return Batch(
        ids=_tensor(rows.ids),
        example=_tensor(rows.example),
        segment=_tensor(rows.segment),
        position=_tensor(rows.position),
        row=torch.from_numpy(address),
        visit=torch.from_numpy(visit),
        summary=_tensor(summary).flatten(),
        label=_tensor(rows.label).flatten(),
        counted=torch.from_numpy(rows.counted).flatten(),
        columns={name: _tensor(column.values) for name, column in rows.columns.items()},
        per_row={name: torch.from_numpy(flags) for name, flags in rows.per_row.items()},
        per_example={name: _tensor(values) for name, values in rows.per_example.items()},
    )


def _tensor(values: np.ndarray) -> torch.Tensor:
    """Whole numbers as int64; others as they are."""
    tensor = torch.from_numpy(values)
    return tensor if tensor.is_floating_point() else tensor.long()
