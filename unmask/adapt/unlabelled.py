"""Texts without labels: read from files as the task reads them, and chosen by the seed if there are more than a training needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unmask import chance
from unmask.adapt.epochs import ToRead
from unmask.axes import Task, Tune
from unmask.counted import counted
from unmask.data.examples import Examples
from unmask.data.loader import track_seed
from unmask.data.pack import Rows
from unmask.data.turns import TurnLoader
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import laid_out
from unmask.recipe import MAIN, UNLABELLED
from unmask.tasks._rows import SUFFIXES, format_of, lines_of_file
from unmask.tasks.classify import Columns

MOST = 200_000  # texts that are kept of larger files, so that memory is bounded
LINES = 4096  # of a .txt file that are read at a time


@dataclass(frozen=True)
class Texts:
    """Texts without labels, and how often they are read."""

    examples: Sequence[Any]
    turns: float  # steps on these texts for each step on examples
    epochs: float  # of the training


def check_unlabelled(tune: Tune | None, given: bool) -> None:
    """Refuse texts without labels that no one learns from, and a way of tuning that has none."""
    wanted = tune is not None and tune.turns > 0
    name = "full" if tune is None else type(tune).__name__.lower()
    require(
        wanted or not given,
        "--unlabelled has no effect with --tune {name}: leave it out, or set --tune cvt, which learns from texts without labels",
        name=name,
    )
    require(
        given or not wanted,
        "--tune {name} learns from texts without labels too, and there are none: give a file or a folder with --unlabelled",
        name=name,
    )


def read_unlabelled(task: Task, paths: Sequence[str | Path], columns: Columns | None, seed: int = 0) -> list[Any]:
    """The texts of files and folders, in order. If there are more than `MOST`, some are chosen by the seed.

    Every line of a .txt file is a text. Other files are read as the task reads a file without answers."""
    found = [one for path in paths for one in _files(Path(path))]
    texts = _sampled((example for file in found for example in _examples(task, file, columns)), MOST, seed)
    require(bool(texts), "{paths} holds no text: give files with text", paths=" and ".join(map(str, paths)))
    return texts


def with_texts(reading: ToRead, texts: Texts, model: Model, task: Task, seed: int) -> ToRead:
    """What a training reads on examples, and texts in turn with them. No more texts are laid out than it reads: they are chosen by
    the seed. An epoch is still one reading of all examples."""
    steps = max(1, round(reading.steps * (1 + texts.turns)))
    needed = math.ceil(texts.epochs * steps * texts.turns / (1 + texts.turns)) * reading.batch
    rows, notices = _rows(model, task, texts.examples, needed, reading.batch, seed)
    (end, labelled), own = reading.legs[0], track_seed(seed, UNLABELLED, 1)

    def opened(state: dict[str, Any] | None, widths: int | None) -> TurnLoader:
        sources = {
            MAIN: lambda state: labelled(state, widths),
            UNLABELLED: lambda state: Examples(rows, own, state, widths=widths),
        }
        return TurnLoader(sources, {MAIN: 1.0, UNLABELLED: texts.turns}, reading.batch, seed, state)

    return replace(reading, steps=steps, legs=((end, opened),), notices=notices, shown=task.head)


def _rows(
    model: Model, task: Task, texts: Sequence[Any], needed: int, batch: int, seed: int
) -> tuple[Rows, tuple[str, ...]]:
    """The rows of at most so many texts, and what a user should know about them. `batch`: the rows of a step."""
    task.check(texts, "the first training example", labelled=False)
    chosen = [texts[number] for number in _some(len(texts), needed, seed)]
    rows, notes = laid_out(model, task.lay_out(chosen, labelled=False))
    require(
        len(rows) >= batch,
        "the texts without labels fill {rows:,} rows, fewer than the {batch:,} of one step: give more text, or set examples={rows}",
        rows=len(rows),
        batch=batch,
    )
    often = f"each is read {needed / len(rows):.1f} times"
    some = f"{len(chosen):,} of them are read, chosen by the seed"
    cut = tuple(counted(count, f"{note} (without labels)") for note, count in notes.items())
    return rows, (
        f"{counted(len(texts), 'texts without labels')}: {often if len(chosen) == len(texts) else some}",
        *cut,
    )


def _files(path: Path) -> Iterator[Path]:
    """A file, or the files in a folder that hold texts, by name."""
    if path.is_file():
        yield path
        return
    require(path.is_dir(), "there is no such file or folder: {path}", path=path)
    inside = sorted(file for file in path.rglob("*") if file.is_file() and format_of(file) in SUFFIXES)
    require(
        bool(inside),
        "{path} has no files of text: it needs some that end in {suffixes}",
        path=path,
        suffixes=", ".join(SUFFIXES),
    )
    yield from inside


def _examples(task: Task, file: Path, columns: Columns | None) -> Iterator[Any]:
    if format_of(file) != ".txt":
        yield from task.read(file, columns, labelled=False)[0]
        return
    lines = ((number, line) for number, line in lines_of_file(file) if line.strip())
    while some := list(islice(lines, LINES)):
        yield from task.given([line for _, line in some], [f"{file}, line {number:,}" for number, _ in some])


def _sampled(values: Iterable[Any], most: int, seed: int) -> list[Any]:
    """At most so many values, in their order: those with the lowest random numbers. No more than twice as many are held."""
    kept: list[tuple[float, int, Any]] = []
    for start, block in enumerate(_blocks(values, most)):
        numbers = np.arange(start * most, start * most + len(block))
        keys = chance.draw(numbers, seed, chance.purpose("texts without labels")).tolist()
        kept = sorted([*kept, *zip(keys, numbers.tolist(), block, strict=True)], key=lambda one: one[:2])[:most]
    return [value for _, _, value in sorted(kept, key=lambda one: one[1])]


def _blocks(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(values)
    while block := list(islice(rest, size)):
        yield block


def _some(count: int, wanted: int, seed: int) -> list[int]:
    """The numbers of at most so many of the texts, in order, chosen by the seed."""
    keys = chance.draw(np.arange(count), seed, chance.purpose("texts that are read"))
    chosen: list[int] = np.sort(np.argsort(keys, kind="stable")[:wanted]).tolist()
    return chosen
