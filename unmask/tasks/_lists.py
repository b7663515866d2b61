"""Examples that belong together, and lists of passages: one that is relevant to a query, and some that are less relevant."""

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
    return same([one.query for one in examples])


def same(keys: Sequence[str | None]) -> list[list[int]]:
    """The numbers of the examples that have the same key. An example without a key is alone."""
    found: dict[str | int, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        found[number if key is None else key].append(number)
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
