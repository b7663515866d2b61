"""A folder of tasks, for a comparison or for one model of all: one file or one subfolder for each.

    tasks/sst2/train.jsonl, dev.jsonl, test.jsonl   a task to adapt to; the kind of task is told by the columns
    tasks/sst2/task.json                            optional: {"settings": ["epochs=3"], "examples": 1000}, or
                                                    "per_label": 8 for so few examples of each label; "tune": "head"
                                                    for a way of tuning other than all weights
    tasks/blimp.jsonl, tasks/wiki.txt               scored without adapting: minimal pairs, last words, plain text

A subfolder without `train` is scored without adapting too, on its `test`. Files may be compressed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask import chance, tasks
from unmask.adapt.ways import task_with, tuned_by, tuning_settings
from unmask.axes import Task, Tune
from unmask.errors import UserError, require
from unmask.tasks._rows import read_rows
from unmask.tasks._track import learned
from unmask.text.documents import suffixes

OPTIONS = "task.json"
_SPLITS = ("train", "dev", "test")
_EXAMPLES = (".jsonl", ".csv", ".tsv", ".parquet")
_TEXTS = (".txt",)


@dataclass(frozen=True)
class TaskFiles:
    """One task of a comparison."""

    name: str
    test: Path  # the file that models are scored on
    kind: str | None = None  # the kind of task to adapt to; None: scored without adapting
    train: Path | None = None
    dev: Path | None = None  # the best epoch is kept by it; None: the last one
    settings: tuple[str, ...] = ()  # of the task, and with "tune." before them of the way of tuning
    examples: int | None = None  # training examples, drawn for each seed; None: all of them
    per_label: int | None = None  # training examples of each label, drawn for each seed
    tune: str | None = None  # the way of tuning; None: all weights

    @property
    def key(self) -> str:
        """A hash of the files and settings: scores of another key are measured again."""
        options = (self.kind, self.settings, self.examples, self.per_label)
        found = hashlib.sha256(repr(options if self.tune is None else (*options, self.tune)).encode())
        for file in (self.train, self.dev, self.test):
            found.update(file.read_bytes() if file else b"none")
        return found.hexdigest()[:16]

    def task(self) -> Task:
        assert self.kind is not None
        found: Task = task_with(tasks.get(self.kind), tuning_settings(self.settings)[0], self.tune)
        return found

    def way(self) -> Tune | None:
        """The way of tuning, with its settings; None: all weights are trained."""
        return tuned_by(self.tune, tuning_settings(self.settings)[1])

    def check(self) -> None:
        """Refuse labels in `dev` and `test` that no training example has, before anything is trained."""
        if self.train is None:
            return
        part = self.task()
        known = learned(part, part.read(self.train, None)[0], self.train)
        for file in (self.dev, self.test):
            if file is not None:
                known.check(part.read(file, None)[0], self.name)

    def drawn(self, examples: list[Any], seed: int) -> list[Any]:
        """The training examples of a seed: all, or some that are drawn; in the order of the file."""
        if self.per_label is not None:
            return tasks.few(examples, self.per_label, seed)
        if self.examples is None or self.examples >= len(examples):
            return examples
        rng = chance.generator(seed, chance.purpose("examples of a comparison"))
        return [examples[i] for i in sorted(rng.choice(len(examples), self.examples, replace=False).tolist())]


def find(folder: Path) -> tuple[list[TaskFiles], list[str]]:
    """The tasks of a folder by name, and a notice for each file that no kind of task reads."""
    require(folder.is_dir(), "there is no such folder of tasks: {folder}", folder=folder)
    found, notices = [], []
    for path in sorted(folder.iterdir(), key=_by_numbers):
        if path.name.startswith("."):
            continue
        try:
            found.append(_of_folder(path) if path.is_dir() else TaskFiles(_stem(path), _scored(path)))
        except UserError as error:
            notices.append(f"{path} is left out: {error}")
    names = [task.name for task in found]
    double = next((name for name in names if names.count(name) > 1), None)
    require(double is None, "{folder} has two tasks with the name {name}: rename one", folder=folder, name=double)
    require(
        bool(found), "{folder} holds no task: {notices}", folder=folder, notices="; ".join(notices) or "it is empty"
    )
    return found, notices


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """The order of names in which "8 labels" comes before "32 labels"."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _of_folder(folder: Path) -> TaskFiles:
    files = {split: _split(folder, split) for split in _SPLITS}
    test = files["test"] or files["dev"]
    if test is None:
        raise UserError("it has no test or dev file: name them test.jsonl and dev.jsonl")
    if files["train"] is None:
        return TaskFiles(folder.name, _scored(test))
    dev = files["dev"] if files["test"] else None  # a dev set that is the test set chooses no epoch
    task = TaskFiles(folder.name, test, _kind(files["train"]), files["train"], dev)
    task = _with_options(task, folder / OPTIONS)
    part = task.task()  # everything is read before anything is trained
    way = task.way()
    require(
        way is None or not way.turns,
        '{file}: "tune": "{tune}" learns from texts without labels, and a folder of tasks has none: name another way of tuning',
        file=folder / OPTIONS,
        tune=task.tune,
    )
    for file in (task.train, task.dev, task.test):
        if file is not None:
            part.read(file, None)
    return task


def _with_options(task: TaskFiles, file: Path) -> TaskFiles:
    if not file.is_file():
        return task
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        settings = tuple(values.pop("settings", ()))
        tune = values.pop("tune", None)
        numbers = {name: values.pop(name, None) for name in ("examples", "per_label")}
    except (ValueError, AttributeError, TypeError):
        raise UserError(
            '{file} is not JSON such as {{"settings": ["epochs=3"], "examples": 1000}}', file=file
        ) from None
    require(
        not values
        and all(isinstance(one, str) for one in settings)
        and (tune is None or isinstance(tune, str))
        and all(one is None or (isinstance(one, int) and one > 0) for one in numbers.values()),
        '{file} may only have "settings", a list such as ["epochs=3"], "tune", a way of tuning such as "head", and "examples" or '
        '"per_label", whole numbers',
        file=file,
    )
    require(None in numbers.values(), '{file} has both "examples" and "per_label": give one of them', file=file)
    return replace(task, settings=settings, tune=tune, **numbers)


def _split(folder: Path, split: str) -> Path | None:
    """The file of a split: train.jsonl, train.csv, train.jsonl.xz ..."""
    found = [path for path in sorted(folder.iterdir()) if _stem(path) == split and path.name != OPTIONS]
    require(
        len(found) < 2,
        "there are two files for {split}: {names}; keep one",
        split=split,
        names=", ".join(path.name for path in found),
    )
    return found[0] if found else None


def _stem(path: Path) -> str:
    """The name without the suffixes of its format and its compression: wiki.2019.txt.xz is wiki.2019."""
    suffix = "".join(suffixes(path))
    return path.name.removesuffix(suffix) if suffix else path.name


def _kind(file: Path) -> str:
    """The kind of task that reads a file, found by its columns or its format."""
    found = tasks.kind_of(file)
    if found is not None:
        return found
    columns = _columns(file)
    known = "; ".join(f"{name}: {_spelled(tasks.get(name).columns)}" for name in tasks.names())
    raise UserError("no kind of task reads the columns {columns}; {known}", columns=", ".join(columns), known=known)


def _scored(file: Path) -> Path:
    """A file that models are scored on without adapting. What it is, evaluation tells by its columns."""
    if suffixes(file)[0] not in _TEXTS:
        columns = _columns(file)
        require(
            not ({"label", "labels", "target", "tags", "answers"} & set(columns)),
            "it has labelled examples, but there is no train file for it: put both in a folder, as train and test",
        )
    return file


def _columns(file: Path) -> list[str]:
    require(
        suffixes(file)[0] in _EXAMPLES,
        "its name ends in {suffix!r}: a task is a file that ends in {known}, or a folder",
        suffix=file.suffix,
        known=", ".join((*_EXAMPLES, *_TEXTS)),
    )
    return list(next(read_rows(file), (0, {}))[1])


def _spelled(columns: Any) -> str:
    return " or ".join("+".join(names) for names in columns)
