"""Kinds of downstream task, one file each. They are found by file name: classify.py holds Classify."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from unmask.errors import unknown
from unmask.tasks.choose import Choose
from unmask.tasks.classify import Classify
from unmask.tasks.write import Write

__all__ = ["Choose", "Classify", "Write", "get", "names"]


def names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[!_]*.py"))


def get(name: str) -> Any:
    """The task of this name, with its usual settings."""
    if name not in names():
        raise unknown("task", name, names())
    module = importlib.import_module(f"unmask.tasks.{name.replace('-', '_')}")
    return getattr(module, name.title().replace("-", ""))()
