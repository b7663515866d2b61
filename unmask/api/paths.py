"""Paths as callers give them: one, or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

Paths = str | Path | Sequence[str | Path]


def listed(paths: Paths) -> list[str | Path]:
    """Always a list."""
    return [paths] if isinstance(paths, str | Path) else list(paths)
