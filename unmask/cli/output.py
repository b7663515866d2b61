"""What a verb says when it is done: JSON for a program, or notes and a line for a person."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from unmask import screen
from unmask.counted import counted
from unmask.progress import Progress


class Said:
    """Takes what the API tells about its results: notices are shown at once, notes together by `show_notes`."""

    def __init__(self, json_: bool) -> None:
        self.json = json_
        self.notes: Counter[str] = Counter()  # what was cut, left out or repaired, and how many

    def __call__(self, record: dict[str, Any]) -> None:
        self.notes.update(record.get("notes", {}))
        if "text" in record:
            notice(record["text"], self.json)

    def show_notes(self) -> None:
        """For a program on the error output too: the result stays one JSON value."""
        if self.json and self.notes:
            screen.json_line({"notes": dict(self.notes)})
        for name, count in self.notes.items() if not self.json else ():
            screen.note(counted(count, name))


def progress(json_: bool) -> Progress:
    """How a long job is followed: drawn; for a program, only its notices and notes."""
    return screen.pass_on if json_ else True


def notice(text: str | None, json_: bool) -> None:
    """Something to know about what was given, if there is anything."""
    if text and json_:
        screen.json_line({"event": "notice", "text": text})
    elif text:
        screen.note(text)


def done(result: Any, said: str, json_: bool) -> None:
    if json_:
        as_json(result)
    else:
        screen.done(said)


def as_json(value: Any, *, lines: bool = False) -> None:
    """Indented, or as one line among many."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=None if lines else 1) + "\n")
