"""One trial: an adaptation with its own examples, seed and folder."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

Adapt = Callable[["Trial"], dict[str, Any]]  # runs a trial; returns the last record of its training


DEV = "dev_"  # before the name of a score on a dev set


@dataclass(frozen=True)
class Trial:
    """What is different between the trials of an adaptation."""

    name: str  # shown while it runs
    examples: Sequence[Any]
    out: Path
    dev: Sequence[Any] = ()
    seed: int = 0
    fresh: bool = False  # start from random weights
    folds: int | None = None  # the number of folds, if this is a training of a cross-validation


@contextmanager
def place_beside(out: Path) -> Iterator[Path]:
    """A new folder name for the run of a trial, next to the final one: a rename is cheap, and the path from it to its base
    is the same. What is left there at the end is deleted."""
    place = out.with_name(f".{out.name}-{uuid4().hex[:8]}")
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def judged_by(scores: dict[str, Any] | None) -> tuple[str, float]:
    """The name and the value of the score on a dev set that a model is chosen by: the first one. `scores`: those of the kept epoch;
    None: no epoch had a score."""
    found = [(name.removeprefix(DEV), value) for name, value in (scores or {}).items() if name.startswith(DEV)]
    return found[0] if found else ("score", math.nan)


def spread(scores: Sequence[float]) -> dict[str, float | None]:
    """The mean of some scores, and their deviation (n - 1); None for one score."""
    values = np.asarray(scores, dtype=float)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "deviation": deviation}


def written(found: dict[str, Any]) -> str:
    """The mean of a `spread` and its deviation, as they are shown."""
    return f"{found['mean']:.4f}" + ("" if found["deviation"] is None else f" ± {found['deviation']:.4f}")
