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
    """Those a model can be adapted to; what a prompt asks needs no adapting."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return [name.replace("_", "-") for name in found if hasattr(_module(name), _title(name))]


def get(name: str) -> Any:
    """The task of this name, with its usual settings."""
    if name not in names():
        raise unknown("task", name, names())
    return getattr(_module(name), _title(name))()


def _module(name: str) -> Any:
    return importlib.import_module(f"unmask.tasks.{name.replace('-', '_')}")


def _title(name: str) -> str:
    return name.title().replace("-", "").replace("_", "")
