"""Curves: how the weight of a loss changes while a network is trained."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.axes import Curve, Part
from unmask.errors import require


@dataclass(frozen=True)
class Until(Part):
    """A weight that holds for the first part of the training, and is 0 afterwards."""

    share: float = 0.5  # of all steps
    value: float = 1.0  # until then

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, f"the share of Until must be in [0, 1], got {self.share}: write 0.5 for half")

    @property
    def most(self) -> float:
        return self.value

    def at(self, done: float) -> float:
        return self.value if done < self.share else 0.0


@dataclass(frozen=True)
class InTurn(Part):
    """A group of losses that stop one after the other: each after its part of this share, the last at its end."""

    share: float = 0.5  # of all steps
    value: float = 1.0  # of each, until it stops

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, f"the share of InTurn must be in [0, 1], got {self.share}: write 0.5 for half")

    @property
    def most(self) -> float:
        return self.value

    def at(self, done: float) -> float:
        return self.of(1, 1).at(done)

    def of(self, number: int, count: int) -> Until:
        """The curve of one of them, counted from 1."""
        return Until(self.share * number / count, self.value)


@dataclass(frozen=True)
class Linear(Part):
    """A weight that goes evenly from one value to another."""

    first: float = 1.0  # before the first step
    last: float = 0.0  # after the last

    @property
    def most(self) -> float:
        return max(self.first, self.last)

    def at(self, done: float) -> float:
        return self.first + (self.last - self.first) * done


@dataclass(frozen=True)
class Exponential(Part):
    """A weight that is multiplied by the same number at every step, from one value to another."""

    first: float = 1.0  # before the first step
    last: float = 0.1  # after the last

    def __post_init__(self) -> None:
        require(
            self.first > 0 and self.last > 0,
            f"the ends of Exponential must be over 0, got {self.first} and {self.last}: take Linear to end at 0",
        )

    @property
    def most(self) -> float:
        return max(self.first, self.last)

    def at(self, done: float) -> float:
        return float(self.first * (self.last / self.first) ** done)


def at(weight: float | Curve, done: float) -> float:
    """A weight when this share of all steps is behind us."""
    return weight if isinstance(weight, int | float) else weight.at(done)


def of(weight: float | Curve, number: int, count: int) -> float | Curve:
    """The weight of one of a group of losses, counted from 1: the same for all, unless they stop in turn."""
    return weight.of(number, count) if isinstance(weight, InTurn) else weight
