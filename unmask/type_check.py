"""Type checks: whether a value has its declared type, and the name of that type in an error."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from unmask.axes import Curve
from unmask.errors import require

LARGEST = 2**31  # every whole number of a recipe must be below it
_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    type(None): "none",
    Curve: "a curve",
}


@cache
def hints_of(part: type) -> dict[str, Any]:
    """The type hints of a part's fields. They are strings in the source, and slow to read."""
    return typing.get_type_hints(part)


def check_types(hints: Mapping[str, Any], values: Mapping[str, Any], before: str) -> None:
    """Refuse values that do not have their declared types, because a file may hold anything.

    `before`: the beginning of the error message."""
    for name, value in values.items():
        large = f" below {LARGEST:,}" if isinstance(value, int) and abs(value) >= LARGEST else ""
        require(
            name not in hints or fits(value, hints[name]),
            "{before}{name} must be {spell}{large}, got {value!r:.60}",
            before=before,
            name=name,
            spell=spell(hints.get(name)),
            large=large,
            value=value,
        )


def fits(value: Any, hint: Any) -> bool:
    """Whether a value, and everything in it, has the declared type."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint in (int, float):
        number = isinstance(value, int) or (hint is float and isinstance(value, float))
        return number and not isinstance(value, bool) and abs(value) < (LARGEST if hint is int else math.inf)
    if is_union(hint):
        return any(fits(value, option) for option in inside)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inside)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, inside[1]) for item in value.values())
    if origin is tuple:
        if not isinstance(value, tuple | list):  # JSON has only lists
            return False
        each = inside[:1] * len(value) if inside[1:] == (...,) else inside
        return len(value) == len(each) and all(map(fits, value, each))
    if is_protocol(hint):
        return dataclasses.is_dataclass(value)
    return hint is Any or isinstance(value, hint)


def options(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; any other hint is its own only alternative."""
    return typing.get_args(hint) if is_union(hint) else (hint,)


def is_union(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union


def is_protocol(hint: Any) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def is_part(hint: Any) -> bool:
    """Whether values of this type are parts: the hint is the protocol of an axis, or a dataclass."""
    return is_protocol(hint) or dataclasses.is_dataclass(hint)


def spell(hint: Any) -> str:
    """The name of a type in an error."""
    return " or ".join(_spell(option) for option in options(hint))


def _spell(option: Any) -> str:
    origin, inside = typing.get_origin(option), typing.get_args(option)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inside))
    if origin is dict:
        return f"a dict, in which each value must be {spell(inside[1])}"
    if origin is tuple:
        return "a list"
    return _NAMES.get(option) or ("a part" if is_part(option) else str(option))
