"""A run that is resumed must be asked for as it was: what differs is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.recipe_json import flat_data


def check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume a run with another request. `now` holds only what the user gives again, the recipe as `plain` writes it."""
    for name, value in now.items():
        difference = _difference(before[name], value) if name == "recipe" else f" ({before[name]}, got {value})"
        same = not difference if name == "recipe" else before[name] == value
        require(
            same,
            f"{out} was started with another {name}{difference}: give the same to resume it, give only --resume and --out, "
            "or choose another --out",
        )


def _difference(before: Any, now: Any) -> str:
    """The first value in which two recipes differ; empty if in none."""
    one, other = flat_data(before), flat_data(now)
    for name in (*one, *other):
        if one.get(name) != other.get(name):
            return f" ({name} was {one.get(name)}, got {other.get(name)})"
    return ""
