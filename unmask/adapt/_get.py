"""Find a way of tuning by its name."""

from __future__ import annotations

import importlib
from typing import Any

from unmask.errors import unknown
from unmask.task_names import class_name
from unmask.tune_names import FULL, names


def get(name: str) -> Any:
    """The way of tuning with this name, with its default settings; None for `full`."""
    if name not in names():
        raise unknown("way of tuning", name, names())
    if name == FULL:
        return None
    return getattr(importlib.import_module(f"unmask.adapt.{name.replace('-', '_')}"), class_name(name))()
