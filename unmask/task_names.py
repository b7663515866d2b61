"""The kinds of downstream task by name, found by their files and without importing them: `--help` must not wait for torch."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "tasks"


def names() -> list[str]:
    """Those a model can be adapted to: a file that defines the class of its name, such as Classify in classify.py."""
    return list(_names())


@cache
def _names() -> tuple[str, ...]:
    files = sorted(path.stem for path in _FOLDER.glob("[!_]*.py"))
    return tuple(name.replace("_", "-") for name in files if class_name(name) in _classes(_FOLDER / f"{name}.py"))


def class_name(name: str) -> str:
    """The class that holds the task of this name."""
    return name.title().replace("-", "").replace("_", "")


def _classes(file: Path) -> set[str]:
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}
