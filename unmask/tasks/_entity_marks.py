"""Marks around entities: special tokens before and after the words that a task asks about (ERNIE of Tsinghua)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from unmask.data.examples import Text
from unmask.errors import require

Place = tuple[int, int]  # the first character of an entity, and the one after its last

# the token of each entity, and the word that its vector starts from
HEAD: Final = {"[HD]": "head"}
TAIL: Final = {"[TL]": "tail"}
ENTITY: Final = {"[ENT]": "entity"}


def with_marks(text: str, places: Sequence[tuple[str, Place]]) -> tuple[str, list[Place]]:
    """The text with a token before and after each entity, and where the entities are then. `places`: token and entity."""
    added = sorted([
        *((start, 1, number, f"{token} ") for number, (token, (start, _)) in enumerate(places)),
        *((end, 0, -number, f" {token}") for number, (token, (_, end)) in enumerate(places)),
    ])  # fmt: skip
    parts, last = [], 0
    for place, _, _, mark in added:
        parts += [text[last:place], mark]
        last = place
    moved = [(_moved(start, added, 2), _moved(end, added, 0)) for _, (start, end) in places]
    return "".join([*parts, text[last:]]), moved


def _moved(place: int, added: Sequence[tuple[int, int, int, str]], at: int) -> int:
    """Where a character is, given all marks; `at`: the kinds of marks at the same place that come before it are below this."""
    return place + sum(len(mark) for where, kind, _, mark in added if where < place or (where == place and kind < at))


def marked_text(text: Text, row: Mapping[str, Any], column: str, where: str) -> Text:
    """A text with marks around the entity that a column of its row gives: [start, end] or {"start": ..., "end": ...}."""
    value = row.get(column)
    start, end = (
        (value.get("start"), value.get("end"))
        if isinstance(value, dict)
        else value
        if isinstance(value, list) and len(value) == 2
        else (None, None)
    )
    require(
        isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text.a),
        '{where}: mark={column} needs a column {column!r} with [start, end] or {{"start": ..., "end": ...}}: the number of its first '
        "character, and the number after its last, in 0 to {length}; got {value!r:.60}",
        where=where or "an example",
        column=column,
        length=len(text.a),
        value=value,
    )
    assert isinstance(start, int)
    assert isinstance(end, int)
    return replace(text, a=with_marks(text.a, [(next(iter(ENTITY)), (start, end))])[0])
