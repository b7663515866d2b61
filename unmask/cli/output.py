"""What a verb says when it is done: JSON for a program, or notes and a line for a person."""

from __future__ import annotations

import json
import sys
from typing import Any

from unmask import screen


def notes(counts: dict[str, int], json_: bool) -> None:
    """What was cut, left out or repaired; for a program, on the error output too: the result stays one JSON value."""
    if json_ and counts:
        screen.json_line({"notes": dict(counts)})
    for name, count in counts.items() if not json_ else ():
        screen.note(f"{count:,} {name}")


def notice(text: str | None, json_: bool) -> None:
    """Something to know about what was given, if there is anything."""
    if text and json_:
        screen.json_line({"event": "notice", "text": text})
    elif text:
        screen.note(text)


def lacking(characters: str, json_: bool) -> None:
    """Characters that a picture shows as boxes, if there are any."""
    from unmask import fonts

    notice(fonts.notice(characters) if characters else None, json_)


def done(result: Any, said: str, json_: bool) -> None:
    if json_:
        as_json(result)
    else:
        screen.done(said)


def as_json(value: Any, *, lines: bool = False) -> None:
    """Indented, or as one line among many."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=None if lines else 1) + "\n")
