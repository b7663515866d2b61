"""Labelled: the rows of a track are the examples of a task, read from a labelled file."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from unmask import chance
from unmask.axes import Part, Task
from unmask.data.arrange import Runs
from unmask.data.examples import rows_of_track
from unmask.data.pack import Rows
from unmask.data.reader import Block, Place, Slot, Taken
from unmask.data.shards import Collection, Texts
from unmask.errors import UserError, require
from unmask.text import Tokenizer
from unmask.text.columns import Column

EXAMPLES: Final = "examples"  # the fact: rows are the examples of a task
HELD_OUT = 50  # every 50th example is held out, if there is no file of held-out examples


@dataclass(frozen=True)
class Labelled(Part):
    """The examples of a task, from a labelled file; the documents of the data are not read.

    The columns of the file say which task it is, as for 'unmask adapt'. A row holds one example. The track predicts the
    answers of the task with a head of its own, which has the name of the track."""

    file: str = "train.jsonl"  # JSON lines, CSV or another format of the task
    dev: str = ""  # a file of held-out examples; "": every 50th example is held out
    task: Task | None = None  # such as Classify(dropout=0.2); none: as the columns of the file say
    fingerprint: str = ""  # of the file, when training began; "": it has not begun

    classes: ClassVar[int] = 0
    answers: ClassVar[tuple[str, ...]] = ()
    packed: ClassVar[bool] = False
    continuous: ClassVar[bool] = False

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({EXAMPLES, "pairs", "labels", "unpacked rows"})

    def ready(self, tokenizer: Tokenizer) -> Labelled:
        return self

    def open(
        self, collection: Collection, tokenizer: Tokenizer, layout: str, length: int, seed: int, *, shuffled: bool = True
    ) -> ExampleReader:  # fmt: skip
        """The reader of the training examples, or of the held-out ones if they are not `shuffled`."""
        assert self.task is not None, "the task of a labelled track is decided before its rows are read"
        require(
            self.fingerprint in ("", fingerprint(self.file)),
            "{file} was changed since this run was started: put the old file back to resume it, or start a new run",
            file=self.file,
        )
        return ExampleReader(*self._rows(tokenizer, layout, length, shuffled), length, seed)

    def _rows(self, tokenizer: Tokenizer, layout: str, length: int, shuffled: bool) -> tuple[Rows, Counter[str]]:
        assert self.task is not None
        found = self.task.read(Path(self.dev if self.dev and not shuffled else self.file), None)[0]
        if not self.dev:
            found = [one for number, one in enumerate(found, 1) if (number % HELD_OUT > 0) == shuffled]
        require(bool(found), "{file} has fewer than {least} examples: none is held out", file=self.file, least=HELD_OUT)
        self.task.check(found, self.file)
        return rows_of_track(self.task.lay_out(found), tokenizer, layout, length)

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        raise UserError(
            "the rows of this track come from {file}, not from a text: explain another track", file=self.file
        )


def fingerprint(file: str | Path) -> str:
    """A hash of the content of a file."""
    require(Path(file).is_file(), "there is no such file of examples: {file}", file=file)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


class ExampleReader:
    """Examples in a new order for every visit. All rows have the width of the longest example, so that shapes are static.

    The rows of a step are counted in examples: one that is read several times has several rows."""

    continuing = False
    reuse = None
    lengths = None

    def __init__(self, rows: Rows, notes: Counter[str], length: int, seed: int) -> None:
        self.rows, self.notes, self.length, self.seed = rows, notes, length, seed

    @cached_property
    def columns(self) -> dict[str, Column]:
        return {name: column[:0, 0] for name, column in self.rows.columns.items()}

    def check(self, slot: Slot) -> None:
        """Any number of rows in a step is allowed."""

    def block(self, place: Place, slot: Slot) -> Block:
        """All examples, in the order of a visit."""
        keys = chance.draw(np.arange(len(self.rows)), self.seed, place.visit, chance.purpose("examples"))
        address = (slot.source << 48) + np.arange(len(self.rows.ids))
        notes = self.notes if place.visit == 0 else Counter[str]()  # each text is counted once
        return _Examples(self.rows, np.argsort(keys, kind="stable"), address, place.visit, notes)

    def after(self, place: Place, slot: Slot) -> Place:
        return Place(place.visit + 1)

    def next_stage(self, place: Place, slot: Slot) -> Place:
        return place  # an example is the same one in rows of another length


class _Examples(Block):
    """Examples that may have several rows each."""

    def part(self, low: int, high: int) -> Taken:
        chosen = self.order[low:high]
        times = len(self.rows.ids) // len(self.rows)
        numbers = (chosen[:, None] * times + np.arange(times)).ravel()
        taken = self.rows.take(numbers, examples=chosen)
        return Taken(taken, self.address[numbers], np.full(len(numbers), self.visit))
