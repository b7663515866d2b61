"""Lists of passages: one that is relevant to a query, and some that are less relevant. Which one it is can be learned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol


class HasQuery(Protocol):
    """A query, and how relevant a passage is to it."""

    @property
    def query(self) -> str: ...

    @property
    def relevance(self) -> float | None: ...


def by_query(examples: Sequence[HasQuery]) -> list[list[int]]:
    """The numbers of the examples of each query."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(examples):
        found[one.query].append(number)
    return list(found.values())


def lists_of(examples: Sequence[HasQuery], size: int) -> list[tuple[int, ...]]:
    """The numbers of the passages of each list: the relevant one first, then at most `size` - 1 others of its query that are less
    relevant. Every passage that is less relevant is in one list of each relevant passage."""
    found = []
    for numbers in by_query(examples):
        value = {number: float(examples[number].relevance or 0) for number in numbers}
        for best in (number for number in numbers if value[number] > 0):
            others = [number for number in numbers if value[number] < value[best]]
            groups = [others[begin : begin + size - 1] for begin in range(0, len(others), size - 1)]
            found += [(best, *group) for group in groups]
    return found
