"""Contract: a property that is checked on a case, and the facts that decide whether it applies to the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unmask.contracts.case import Case


def _always(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Contract:
    """One property that every recipe must have, if the property applies to it."""

    name: str  # one or two words, for tables and for the names of tests
    promise: str  # the property, as a sentence
    check: Callable[[Case], None]  # raises ContractBroken if the case does not have the property
    applies: Callable[[Case], bool] = _always  # decided by facts, never by a class or the name of a recipe
    trains: bool = False  # whether it makes training steps: these contracts take most of the time
