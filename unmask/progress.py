"""Follow a long job from Python: draw its records as on the command line, pass them to a function, or show nothing.

Messages about a result are notices (sentences) and notes (texts with a count). A caller can receive them as the records
{"event": "notice", "text": ...} and {"notes": {text: count}}. Otherwise they are shown as warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from unmask import screen
from unmask.counted import counted
from unmask.errors import Notice

Progress = bool | Callable[[dict[str, Any]], None]  # True: draw; False: do not draw; a function: gets every record
Tell = Callable[[dict[str, Any]], None] | None  # a function that gets the notices and notes; None: they are warnings
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


def draw_notes(counts: Mapping[str, int], progress: Progress) -> None:
    """Draw the notes of a job, or warn about them. If `progress` is a function, it already got them in the last record."""
    for name, count in counts.items() if not callable(progress) else ():
        if progress:
            screen.note(counted(count, name))
        else:
            warnings.warn(counted(count, name), Notice, stacklevel=3)


def tell_notes(counts: Mapping[str, int], tell: Tell, *, depth: int = 1) -> None:
    """Give the notes of a result to the caller. `depth`: the number of calls between the user's code and this function."""
    if tell is not None and counts:
        tell({"notes": dict(counts)})
    for name, count in counts.items() if tell is None else ():
        warnings.warn(counted(count, name), Notice, stacklevel=2 + depth)


def tell_notice(text: str | None, tell: Tell, *, depth: int = 1) -> None:
    """Give a notice to the caller, if there is one. `depth`: as for `tell_notes`."""
    if text and tell is not None:
        tell({"event": "notice", "text": text})
    elif text:
        warnings.warn(text, Notice, stacklevel=2 + depth)


def _warn(record: dict[str, Any]) -> None:
    texts = [record["text"]] if record.get("event") == "notice" else []
    notes = record.get("notes", {}) if "event" in record else {}
    for text in [*texts, *record.get("notices", ()), *(counted(count, name) for name, count in notes.items())]:
        warnings.warn(text, Notice, stacklevel=4)
