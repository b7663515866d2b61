"""Contract: a property as a function of a case, and the facts that say to which cases it applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unmask.contracts.case import Case


def _always(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Contract:
    """One property that every recipe must have, if it applies to the recipe."""

    name: str  # one or two words, for tables and for the names of tests
    promise: str  # the property, as a sentence
    check: Callable[[Case], None]  # raises ContractBroken
    applies: Callable[[Case], bool] = _always  # decided by facts: never by a class or by the name of a recipe
    trains: bool = False  # whether it takes training steps, and so most of the time
