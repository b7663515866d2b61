"""Kinds of downstream task, one file each. A task is found by its file name: classify.py holds Classify."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from unmask.axes import Task
from unmask.errors import unknown
from unmask.recipe import Recipe
from unmask.tasks._answers import Prediction, Written
from unmask.tasks._labelled import few
from unmask.tasks._training import Trained
from unmask.tasks.choose import Choose
from unmask.tasks.classify import Classify
from unmask.tasks.write import Write

__all__ = ["Choose", "Classify", "Prediction", "Trained", "Write", "Written", "few", "get", "names", "task_of"]


def names() -> list[str]:
    """The tasks that a model can be adapted to. Prompting is not among them: it needs no adaptation."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return [name.replace("_", "-") for name in found if hasattr(_module(name), _title(name))]


def task_of(recipe: Recipe) -> Task | None:
    """The task that a model answers: the one it was adapted to, or `Write` if it was pretrained to write a second text."""
    writes = "prefix" in recipe.writes
    return recipe.task or (Write() if writes else None)


def get(name: str) -> Any:
    """The task with this name, with its default settings."""
    if name not in names():
        raise unknown("task", name, names())
    return getattr(_module(name), _title(name))()


def _module(name: str) -> Any:
    return importlib.import_module(f"unmask.tasks.{name.replace('-', '_')}")


def _title(name: str) -> str:
    return name.title().replace("-", "").replace("_", "")
