"""Follow a long job from Python: its records drawn as on the command line, given to a function, or not shown.

Notices and notes are drawn with the rest; where nothing is drawn they are warnings (`unmask.errors.Notice`)."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from unmask import screen
from unmask.errors import Notice

Progress = bool | Callable[[dict[str, Any]], None]  # draw; draw nothing; or call this with every record
Draw = Callable[[Iterable[dict[str, Any]]], Iterator[dict[str, Any]]]


def follow(records: Iterable[dict[str, Any]], progress: Progress, draw: Draw) -> dict[str, Any]:
    """Run a job to its end; returns its last record."""
    last: dict[str, Any] = {}
    for last in draw(records) if progress is True else records:
        if callable(progress):
            progress(last)
        elif not progress:
            _warn(last)
    return last


def tell(counts: dict[str, int], progress: Progress) -> None:
    """What was cut, left out or repaired, where the records do not say it."""
    for name, count in counts.items() if not callable(progress) else ():
        if progress:
            screen.note(f"{count:,} {name}")
        else:
            warnings.warn(f"{count:,} {name}", Notice, stacklevel=3)


def warn_of(counts: Counter[str], before: Counter[str], stacklevel: int) -> None:
    """A warning for each count that has grown."""
    for name, count in (counts - before).items():
        warnings.warn(f"{count:,} {name}", Notice, stacklevel=stacklevel + 1)


def _warn(record: dict[str, Any]) -> None:
    texts = [record["text"]] if record.get("event") == "notice" else []
    notes = record.get("notes", {}) if "event" in record else {}
    for text in [*texts, *record.get("notices", ()), *(f"{count:,} {name}" for name, count in notes.items())]:
        warnings.warn(text, Notice, stacklevel=4)
