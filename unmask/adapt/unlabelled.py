"""Texts without labels: read from files as the task reads them, and chosen by the seed if there are more than a training needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unmask import chance
from unmask.axes import Task, Tune
from unmask.data.pack import Rows
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import laid_out
from unmask.tasks._rows import SUFFIXES, format_of, lines_of_file
from unmask.tasks.classify import Columns

MOST = 200_000  # texts that are kept of larger files, so that memory is bounded
LINES = 4096  # of a .txt file that are read at a time


@dataclass(frozen=True)
class TextRows:
    """The rows of texts without labels that a training reads."""

    rows: Rows
    turns: float  # steps on these rows for each step on examples
    notices: tuple[str, ...] = ()


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


def rows_without_labels(
    model: Model, task: Task, texts: Sequence[Any], *, turns: float, steps: int, batch: int, seed: int
) -> TextRows:
    """The rows of as many texts as a training reads, chosen by the seed. `steps`: of the training, on these texts. `batch`: rows in
    each of them."""
    task.check(texts, "the first training example", labelled=False)
    chosen = [texts[number] for number in _some(len(texts), steps * batch, seed)]
    rows, notes = laid_out(model, task.lay_out(chosen, labelled=False))
    require(
        len(rows) >= batch,
        "the texts without labels fill {rows:,} rows, fewer than the {batch:,} of one step: give more text, or set examples={rows}",
        rows=len(rows),
        batch=batch,
    )
    share = steps * batch / len(rows)
    read = (
        f"each is read {share:.1f} times"
        if len(chosen) == len(texts)
        else f"{len(chosen):,} of them are read, chosen by the seed"
    )
    cut = tuple(f"{count:,} {note} (without labels)" for note, count in notes.items())
    return TextRows(rows, turns, (f"{len(texts):,} texts without labels: {read}", *cut))


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
