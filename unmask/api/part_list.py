"""list_parts: every part that a recipe can be made of, by axis, with its facts."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unmask import adapt, axes, tasks, tune_names
from unmask.errors import unknown
from unmask.part_names import parts_of
from unmask.recipe import Recipe
from unmask.type_check import hints_of, is_part, is_protocol, options


@dataclass(frozen=True)
class PartEntry:
    """One part, with its usual values."""

    axis: str
    name: str
    about: str  # the first line of its documentation
    needs: tuple[str, ...]  # facts that other parts must give; alternatives have | between them
    gives: tuple[str, ...]  # facts that other parts may rely on


def list_parts(axis: str | None = None) -> list[PartEntry]:
    """Every part of an axis such as "hide", or of all axes, with the facts of its usual values."""
    found = _by_axis()
    if axis is not None and axis not in found:
        raise unknown("axis", axis, found)
    chosen = found if axis is None else [axis]
    return [_entry(name, part()) for name in chosen for part in found[name]]


def _by_axis() -> dict[str, list[type]]:
    """The parts of each axis. An axis is a field, of a recipe or of one of its parts, that takes any part of a protocol, or
    one of several parts."""
    known: dict[type, str] = {}
    found: dict[str, list[type]] = {}
    waiting: list[type] = [Recipe]
    for owner in waiting:  # it grows while it is read
        for name, kind in _fields(owner):
            new = [kind]
            if is_protocol(kind) and kind not in known:
                known[kind] = name
                new = found[name] = _parts(kind)
            waiting += [part for part in new if part not in waiting and not is_protocol(part)]
    axes_of_protocols = {name: _own(parts, list(found.values())) for name, parts in found.items()}
    listed = {part for parts in found.values() for part in parts}
    others = ((name, kinds) for owner in waiting for name, kinds in _alternatives(owner))
    return axes_of_protocols | {name: kinds for name, kinds in others if not listed.intersection(kinds)}


def _fields(owner: type) -> Iterator[tuple[str, type]]:
    """What the fields of a part take, with the name of the axis: that of the field. Many fields take a number or a curve."""
    for name, hint in hints_of(owner).items():
        inside = [hint, *(inner for option in options(hint) for inner in typing.get_args(option))]
        for kind in (option for one in inside for option in options(one) if is_part(option)):
            yield kind.__name__.lower() if kind is axes.Curve else name, kind


def _alternatives(owner: type) -> Iterator[tuple[str, list[type]]]:
    """The fields that take one of several parts by their names, without a protocol."""
    for name, hint in hints_of(owner).items():
        kinds = [kind for kind in options(hint) if is_part(kind) and not is_protocol(kind)]
        if len(kinds) > 1:
            yield name, kinds


def _parts(protocol: type) -> list[type]:
    if protocol is axes.Task:
        return [type(tasks.get(name)) for name in tasks.names()]
    if protocol is axes.Tune:
        return [type(way) for name in tune_names.names() if (way := adapt.get(name)) is not None]
    return list(parts_of(protocol, None).values())


def _own(parts: list[type], others: list[list[type]]) -> list[type]:
    """The parts of an axis that are not those of a narrower one: a protocol with few members fits parts of other axes."""
    narrower = {part for other in others if set(other) < set(parts) for part in other}
    return [part for part in parts if part not in narrower]


def _entry(axis: str, part: Any) -> PartEntry:
    """A part with all parts in it: what one of them gives to another is no longer needed."""
    about = (inspect.getdoc(type(part)) or "").partition("\n")[0]
    gives = axes.gives_of(part)
    needs = [need for _, inner in axes.parts_in(part) for need in inner.needs if not gives & set(need.alternatives)]
    facts = tuple(dict.fromkeys(need.fact for need in needs))
    return PartEntry(axis, type(part).__name__, about, facts, tuple(sorted(gives)))
