"""The loader: endless batches from prepared data, in an order that is a function of the seed alone.

Documents are dealt once into groups of about a million tokens. A group, arranged and packed, is a pure function of
(seed, group, visit): so any place in the data is reached at once, and a resumed run goes on at the very next row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from unmask import chance
from unmask.axes import Arrange
from unmask.batch import Batch
from unmask.data.arrange import special_ids
from unmask.data.background import begun
from unmask.data.pack import Rows, pack
from unmask.data.shards import Collection
from unmask.errors import require
from unmask.text import Tokenizer

GROUP_TOKENS = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where reading stands: the visit, the how-manieth group of that visit, the how-manieth row of that group."""

    visit: int = 0
    group: int = 0
    row: int = 0


@dataclass(frozen=True)
class Group:
    """The rows of one group in the order of this visit, with what names their randomness."""

    rows: Rows
    order: np.ndarray
    number: int
    visit: int
    notes: Counter[str]


class Reader:
    """One data set, arranged for one row length."""

    def __init__(
        self, collection: Collection, tokenizer: Tokenizer, arrange: Arrange, layout: str, length: int, seed: int
    ) -> None:
        require(len(collection) > 0, "the data holds no document")
        self.collection, self.arrange, self.layout, self.length, self.seed = collection, arrange, layout, length, seed
        self.specials = special_ids(tokenizer, layout)
        self.pad = tokenizer.vocabulary.pad
        self.groups = self._deal()

    def _deal(self) -> list[np.ndarray]:
        """Documents in a fixed random order, cut into groups of about GROUP_TOKENS."""
        numbers = np.arange(len(self.collection))
        order = np.argsort(chance.draw(numbers, self.seed, chance.purpose("deal documents")), kind="stable")
        group = (np.cumsum(self.collection.lengths[order]) - 1) // GROUP_TOKENS
        merged: list[np.ndarray] = []
        for documents in np.split(order, np.flatnonzero(np.diff(group)) + 1):
            if merged and min(len(documents), len(merged[-1])) == 1:  # pairs need another document to draw from
                merged[-1] = np.concatenate((merged[-1], documents))
            else:
                merged.append(documents)
        return merged

    def group(self, visit: int, index: int) -> Group:
        """The index-th group of a visit, arranged, packed and shuffled."""
        number = int(self._shuffled(len(self.groups), "groups", visit)[index])
        texts = self.collection.gather(self.groups[number])
        rng = chance.generator(self.seed, visit, number, chance.purpose("arrange"))
        runs = self.arrange.runs(texts, self.layout, self.length, rng)
        rows = pack(texts, runs, self.specials, self.pad, self.length, self.arrange.packed)
        order = self._shuffled(len(rows), "rows", visit, number)
        return Group(rows, order, number, visit, runs.notes)

    def _shuffled(self, count: int, purpose: str, *counters: int) -> np.ndarray:
        keys = chance.draw(np.arange(count), self.seed, *counters, chance.purpose(purpose))
        return np.argsort(keys, kind="stable")

    def next_place(self, place: Place) -> Place:
        """The beginning of the group after this one."""
        if place.group + 1 < len(self.groups):
            return Place(place.visit, place.group + 1)
        return Place(place.visit + 1)

    def rows_from(self, place: Place) -> Iterator[tuple[Group, Place]]:
        """Groups from a place on; the next one is made ready in the background."""
        ahead = begun(self.group, place.visit, place.group)
        while True:
            group, after = ahead.result(), self.next_place(place)
            ahead = begun(self.group, after.visit, after.group)
            yield group, place
            place = after


class Cursor:
    """Takes rows from a reader and remembers the place of the next one."""

    def __init__(self, reader: Reader, place: Place) -> None:
        self.reader, self.place = reader, place
        self.notes: Counter[str] = Counter()
        self._groups = reader.rows_from(replace(place, row=0))
        self._group: Group | None = None

    def take(self, count: int) -> list[tuple[Group, np.ndarray]]:
        """The next `count` rows, as (group, row numbers)."""
        taken = []
        while count:
            if self._group is None or self.place.row >= len(self._group.order):
                if self._group is not None:
                    self.place = self.reader.next_place(self.place)
                self._group, _ = next(self._groups)
                self.notes.update(self._group.notes)
            chosen = self._group.order[self.place.row : self.place.row + count]
            taken.append((self._group, chosen))
            self.place = replace(self.place, row=self.place.row + len(chosen))
            count -= len(chosen)
        return taken


class Loader:
    """Endless batches from a mixture of data sets. `state()` says where it stands; give it back to go on."""

    def __init__(self, readers: list[Reader], weights: list[float], state: dict[str, Any] | None = None) -> None:
        require(all(w > 0 for w in weights), f"the weight of a data set must be over 0, got {weights}")
        state = state or {"places": [{} for _ in readers], "counts": [0] * len(readers)}
        require(
            len(state["places"]) == len(readers), "the run was started with another number of data sets: name the same"
        )
        self.cursors = [Cursor(r, Place(**p)) for r, p in zip(readers, state["places"], strict=True)]
        self.shares = np.array(weights) / sum(weights)
        self.counts = np.array(state["counts"], dtype=np.int64)

    def batch(self, rows: int) -> Batch:
        parts = []
        for source, (cursor, count) in enumerate(zip(self.cursors, self._turns(rows), strict=True)):
            # groups are numbered anew, so that rows of different data sets never share their randomness
            parts += [(replace(g, number=(source << 24) + g.number), chosen) for g, chosen in cursor.take(count)]
        return collate(parts)

    def _turns(self, rows: int) -> list[int]:
        """How many of the next rows come from each data set: always as near to the shares as whole rows allow."""
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

    def state(self) -> dict[str, Any]:
        return {"places": [asdict(cursor.place) for cursor in self.cursors], "counts": self.counts.tolist()}

    def after_stage(self) -> dict[str, Any]:
        """The state to start the next row length from: rows no longer mean the same, so each set goes on a group on."""
        places = [c.reader.next_place(c.place) if c.place.row else c.place for c in self.cursors]
        return {"places": [asdict(place) for place in places], "counts": self.counts.tolist()}

    @property
    def visits(self) -> int:
        return max(cursor.place.visit for cursor in self.cursors)

    @property
    def notes(self) -> Counter[str]:
        return sum((cursor.notes for cursor in self.cursors), Counter())


def collate(parts: list[tuple[Group, np.ndarray]]) -> Batch:
    """Rows of one or more groups as a batch."""

    def joined(name: str) -> np.ndarray | None:
        stored = [getattr(group.rows, name) for group, _ in parts]
        if all(column is None for column in stored):
            return None
        columns = [_taken(column, chosen, group) for column, (group, chosen) in zip(stored, parts, strict=True)]
        return columns[0] if len(columns) == 1 else np.concatenate(columns)

    row = np.concatenate([(group.number << 24) + chosen for group, chosen in parts])
    visit = np.concatenate([np.full(len(chosen), group.visit) for group, chosen in parts])
    return to_batch(joined, row, visit)


def _taken(column: np.ndarray | None, chosen: np.ndarray, group: Group) -> np.ndarray:
    """Some rows of a column; where one data set of a mixture lacks it, no token is in any unit."""
    return np.full((len(chosen), group.rows.ids.shape[1]), -1, np.int32) if column is None else column[chosen]


def to_batch(column: Callable[[str], np.ndarray | None], row: np.ndarray, visit: np.ndarray) -> Batch:
    """A batch from the columns of `Rows`, each got by its name; those of a lexicon may be missing."""

    def tensor(name: str) -> torch.Tensor:
        return torch.from_numpy(column(name)).long()

    ids = tensor("ids")
    flat = torch.arange(len(ids))[:, None] * ids.shape[1]
    return Batch(
        ids=ids,
        example=tensor("example"),
        segment=tensor("segment"),
        position=tensor("position"),
        row=torch.from_numpy(row),
        visit=torch.from_numpy(visit),
        summary=(tensor("summary") + flat).flatten(),
        label=tensor("label").flatten(),
        counted=torch.from_numpy(column("counted")).flatten(),
        columns={n: tensor(n) for n in ("word", "sentence", "phrase", "entity") if column(n) is not None},
    )


def held_out(reader: Reader, most_rows: int) -> list[tuple[Group, np.ndarray]]:
    """A fixed set of rows to validate on: the first of visit 0, so their randomness never changes."""
    parts: list[tuple[Group, np.ndarray]] = []
    for index in range(len(reader.groups)):
        group = reader.group(0, index)
        parts.append((group, group.order[:most_rows]))
        most_rows -= len(parts[-1][1])
        if most_rows <= 0:
            break
    return parts
