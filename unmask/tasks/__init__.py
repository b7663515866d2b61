"""Kinds of downstream task, one file each. A task is found by its file name: classify.py holds Classify."""

from __future__ import annotations

import importlib
from typing import Any

from unmask.axes import Task
from unmask.errors import unknown
from unmask.recipe import Recipe
from unmask.task_names import class_name, names
from unmask.tasks._answers import Prediction, Written
from unmask.tasks._labelled import few
from unmask.tasks._training import Trained
from unmask.tasks.choose import Choose
from unmask.tasks.classify import Classify
from unmask.tasks.embed import Embed
from unmask.tasks.write import Write

__all__ = ["Choose", "Classify", "Embed", "Prediction", "Trained", "Write", "Written", "few", "get", "names", "task_of"]


def task_of(recipe: Recipe) -> Task | None:
    """The task that a model answers: the one it was adapted to, or `Write` if it was pretrained to write a second text."""
    writes = "prefix" in recipe.writes
    return recipe.task or (Write() if writes else None)


def get(name: str) -> Any:
    """The task with this name, with its default settings."""
    if name not in names():
        raise unknown("task", name, names())
    module = importlib.import_module(f"unmask.tasks.{name.replace('-', '_')}")
    return getattr(module, class_name(name))()
