"""The ways of tuning by name, found by their files and without importing them: `--help` must not wait for torch."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from unmask.task_names import class_name

FULL = "full"  # all weights are trained: the way of a recipe without `tune`
_FOLDER = Path(__file__).parent / "adapt"


def names() -> list[str]:
    """`full`, and every file that defines a dataclass of its name, such as Lora in lora.py."""
    return [FULL, *_names()]


@cache
def _names() -> tuple[str, ...]:
    files = sorted(_FOLDER.glob("[!_]*.py"))
    return tuple(file.stem.replace("_", "-") for file in files if class_name(file.stem) in _parts(file))


def _parts(file: Path) -> set[str]:
    """The names of the dataclasses in a file: a part is one."""
    classes = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    return {node.name for node in classes if any("dataclass" in ast.unparse(mark) for mark in node.decorator_list)}
