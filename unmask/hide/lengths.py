"""Lengths: how the number of words (or tokens) in a hidden span is distributed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from unmask.axes import Part, PartLike
from unmask.errors import require

_LARGEST = 100  # beyond it a float cannot hold the powers of a Poisson distribution


class Lengths(PartLike, Protocol):
    """What `hide.units.lengths` must be."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of spans of length 1, 2, 3 ...; the sum is 1."""


@dataclass(frozen=True)
class Geometric(Part):
    """A geometric distribution, cut at a largest length (SpanBERT: mean 3.8)."""

    stop: float = 0.2  # the probability that a span ends after each of its words
    most: int = 10  # the longest span

    def __post_init__(self) -> None:
        require(0 < self.stop < 1, "hide.units.lengths.stop must be in (0, 1), got {stop}", stop=self.stop)
        require(self.most >= 1, "hide.units.lengths.most must be 1 or more, got {most}", most=self.most)

    @property
    def shares(self) -> tuple[float, ...]:
        return _normal([self.stop * (1 - self.stop) ** i for i in range(self.most)])


@dataclass(frozen=True)
class Harmonic(Part):
    """The share of length n is proportional to 1/n (ALBERT: up to 3; XLNet: up to 5)."""

    most: int = 3  # the longest span

    def __post_init__(self) -> None:
        require(self.most >= 1, "hide.units.lengths.most must be 1 or more, got {most}", most=self.most)

    @property
    def shares(self) -> tuple[float, ...]:
        return _normal([1 / n for n in range(1, self.most + 1)])


@dataclass(frozen=True)
class Poisson(Part):
    """A Poisson distribution, without length 0, cut at a largest length (BART: mean 3)."""

    mean: float = 3.0  # of the distribution with length 0
    most: int = 12  # the longest span

    def __post_init__(self) -> None:
        require(
            0 < self.mean <= _LARGEST,
            "hide.units.lengths.mean must be over 0 and at most {largest}, got {mean}",
            largest=_LARGEST,
            mean=self.mean,
        )
        require(
            1 <= self.most <= _LARGEST,
            "hide.units.lengths.most must be between 1 and {largest}, got {most}",
            largest=_LARGEST,
            most=self.most,
        )

    @property
    def shares(self) -> tuple[float, ...]:
        return _normal([self.mean**n / math.factorial(n) for n in range(1, self.most + 1)])


@dataclass(frozen=True)
class Listed(Part):
    """A list with the share of every length (UniLM: 80% one token, 10% two, 10% three)."""

    of: tuple[float, ...] = (0.8, 0.1, 0.1)  # the share of length 1, 2, 3 ...

    def __post_init__(self) -> None:
        require(
            bool(self.of) and min(self.of) >= 0 and abs(sum(self.of) - 1) < 1e-6,
            "hide.units.lengths.of must be shares of 0 or more that add up to 1, got {of}",
            of=self.of,
        )

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(self.of)


def _normal(values: list[float]) -> tuple[float, ...]:
    return tuple(value / sum(values) for value in values)
