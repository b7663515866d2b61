"""Lengths: how many words, or tokens, a hidden span has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unmask.axes import Part, PartLike
from unmask.errors import require


class Lengths(PartLike, Protocol):
    """What `hide.units.lengths` must be."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of spans of length 1, 2, 3 ...; they add up to 1."""


@dataclass(frozen=True)
class Geometric(Part):
    """Each further word with the same chance, up to a longest span (SpanBERT: mean 3.8)."""

    stop: float = 0.2  # the chance that a span ends after any of its words
    most: int = 10  # the longest span

    def __post_init__(self) -> None:
        require(0 < self.stop < 1, f"hide.units.lengths.stop must be in (0, 1), got {self.stop}")
        require(self.most >= 1, f"hide.units.lengths.most must be 1 or more, got {self.most}")

    @property
    def shares(self) -> tuple[float, ...]:
        return _normal([self.stop * (1 - self.stop) ** i for i in range(self.most)])


@dataclass(frozen=True)
class Harmonic(Part):
    """Length n with a share in proportion to 1/n (ALBERT: up to 3; XLNet: up to 5)."""

    most: int = 3  # the longest span

    def __post_init__(self) -> None:
        require(self.most >= 1, f"hide.units.lengths.most must be 1 or more, got {self.most}")

    @property
    def shares(self) -> tuple[float, ...]:
        return _normal([1 / n for n in range(1, self.most + 1)])


@dataclass(frozen=True)
class Listed(Part):
    """The share of every length, as it is listed (UniLM: 80% single tokens, 10% pairs, 10% threes)."""

    of: tuple[float, ...] = (0.8, 0.1, 0.1)  # of length 1, 2, 3 ...

    def __post_init__(self) -> None:
        require(
            bool(self.of) and min(self.of) >= 0 and abs(sum(self.of) - 1) < 1e-6,
            f"hide.units.lengths.of must be shares that add up to 1, got {self.of}",
        )

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(self.of)


def _normal(values: list[float]) -> tuple[float, ...]:
    return tuple(value / sum(values) for value in values)
