"""A run must be resumed with the same settings: check them, and name the first difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.recipe_json import flat_data


def check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume a run with other settings. `now` holds only the settings that the user gave again; the recipe is in the
    form that `plain` returns."""
    for name, value in now.items():
        difference = first_difference(before[name], value) if name == "recipe" else f" ({before[name]}, got {value})"
        same = not difference if name == "recipe" else before[name] == value
        require(
            same,
            (
                "{out} was started with another {name}{difference}: give the same {name} to resume it, give only "
                "--resume and --out, or choose another --out"
            ),
            out=out,
            name=name,
            difference=difference,
        )


def first_difference(before: Any, now: Any) -> str:
    """The first difference between two recipes; an empty string if they are equal."""
    one, other = flat_data(before), flat_data(now)
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            return f" ({name} was {one.get(name)}, got {other.get(name)})"
    return ""
