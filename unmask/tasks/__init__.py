"""Kinds of downstream task, one file each. A task is found by its file name: classify.py holds Classify."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from unmask.axes import Task
from unmask.errors import unknown
from unmask.recipe import Recipe
from unmask.task_names import class_name, names
from unmask.tasks._answers import Prediction, Written
from unmask.tasks._labelled import few
from unmask.tasks._rows import has_rows, read_rows
from unmask.tasks._training import Trained
from unmask.tasks.choose import Choose
from unmask.tasks.classify import Classify
from unmask.tasks.embed import Embed
from unmask.tasks.multi import Multi
from unmask.tasks.number import Number
from unmask.tasks.rank import Rank
from unmask.tasks.relation import Relation
from unmask.tasks.span import Span
from unmask.tasks.tag import Tag
from unmask.tasks.write import Write

__all__ = [
    "Choose", "Classify", "Embed", "Multi", "Number", "Prediction", "Rank", "Relation", "Span", "Tag", "Trained", "Write", "Written", "few", "get", "kind_of", "names", "task_of",
]  # fmt: skip


def task_of(recipe: Recipe) -> Task | None:
    """The task that a model answers: the one it was adapted to, or `Write` if it was pretrained to write a second text."""
    writes = "second" in recipe.writes
    return recipe.task or (Write() if writes else None)


def kind_of(path: str | Path, columns: Any = None) -> str | None:
    """The task that a file is for: of those that know it, the one that reads most of its columns; None: no task knows it."""
    path = Path(path)
    if not path.is_file():
        return None
    held = set(next(read_rows(path), (0, {}))[1]) if has_rows(path) else set()
    known = [get(name) for name in names()]
    sizes = {
        name: max((len(group) for group in task.columns if set(group) <= held), default=0)
        for name, task in zip(names(), known, strict=True)
        if task.knows(path, columns)
    }
    return max(sizes, key=lambda name: sizes[name]) if sizes else None


def get(name: str) -> Any:
    """The task with this name, with its default settings."""
    if name not in names():
        raise unknown("task", name, names())
    module = importlib.import_module(f"unmask.tasks.{name.replace('-', '_')}")
    return getattr(module, class_name(name))()
