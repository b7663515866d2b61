"""Follow a long job from Python: draw its records as on the command line, pass them to a function, or show nothing.

Notices and notes are drawn like other records. If nothing is drawn, they become warnings (`unmask.errors.Notice`)."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from unmask import screen
from unmask.errors import Notice

Progress = bool | Callable[[dict[str, Any]], None]  # True: draw; False: do not draw; a function: gets every record
Draw = Callable[[Iterable[dict[str, Any]]], Iterator[dict[str, Any]]]


def follow(records: Iterable[dict[str, Any]], progress: Progress, draw: Draw) -> dict[str, Any]:
    """Run a job to its end, and return its last record."""
    last: dict[str, Any] = {}
    for last in draw(records) if progress is True else records:
        if callable(progress):
            progress(last)
        elif not progress:
            _warn(last)
    return last


def tell(counts: dict[str, int], progress: Progress) -> None:
    """Show counts of what was cut, left out or repaired, for jobs whose records do not include them."""
    for name, count in counts.items() if not callable(progress) else ():
        if progress:
            screen.note(f"{count:,} {name}")
        else:
            warnings.warn(f"{count:,} {name}", Notice, stacklevel=3)


def warn_of(counts: Counter[str], before: Counter[str], stacklevel: int) -> None:
    """Warn about each count that has grown."""
    for name, count in (counts - before).items():
        warnings.warn(f"{count:,} {name}", Notice, stacklevel=stacklevel + 1)


def _warn(record: dict[str, Any]) -> None:
    texts = [record["text"]] if record.get("event") == "notice" else []
    notes = record.get("notes", {}) if "event" in record else {}
    for text in [*texts, *record.get("notices", ()), *(f"{count:,} {name}" for name, count in notes.items())]:
        warnings.warn(text, Notice, stacklevel=4)
