"""One trial: an adaptation with its own examples, seed and folder."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Adapt = Callable[["Trial"], dict[str, Any]]  # runs a trial; returns the last record of its training


@dataclass(frozen=True)
class Trial:
    """What is different between the trials of an adaptation."""

    name: str  # shown while it runs
    examples: Sequence[Any]
    out: Path
    dev: Sequence[Any] = ()
    seed: int = 0
    fresh: bool = False  # start from random weights


def beside(out: Path, name: str) -> Path:
    """A folder for a trial next to the final one: a rename between them is cheap."""
    return out.parent / f".{out.name}-{name}"


def replace_folder(out: Path, by: Path) -> None:
    """Put a folder in the place of another."""
    if out.exists():
        shutil.rmtree(out)
    by.rename(out)


def spread(scores: Sequence[float]) -> dict[str, float]:
    """The mean of some scores and their deviation (n - 1)."""
    values = np.asarray(scores, dtype=float)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return {"mean": float(values.mean()), "deviation": deviation}
