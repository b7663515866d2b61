"""Curves: numbers of a recipe that change during training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.axes import Curve, Part
from unmask.errors import require


@dataclass(frozen=True)
class Until(Part):
    """A constant weight for the first part of the training, then 0."""

    share: float = 0.5  # of all steps
    value: float = 1.0  # the weight during that share

    def __post_init__(self) -> None:
        require(
            0 <= self.share <= 1,
            "the share of Until must be in [0, 1], got {share}: write 0.5 for half",
            share=self.share,
        )

    @property
    def most(self) -> float:
        return self.value

    @property
    def least(self) -> float:
        return 0.0

    def at(self, done: Any) -> Any:
        return self.value * (done < self.share)

    def of(self, number: int, count: int) -> Curve:
        return self


@dataclass(frozen=True)
class After(Part):
    """0 for the first part of the training, then a constant; `rise` makes the change gradual."""

    share: float = 0.5  # of all steps, in which the value is 0
    value: float = 1.0  # the value after the rise
    rise: float = 0.0  # share of all steps in which it rises from 0 to the value, linearly

    def __post_init__(self) -> None:
        require(
            0 <= self.share <= 1,
            "the share of After must be in [0, 1], got {share}: write 0.2 for 20%",
            share=self.share,
        )
        require(
            0 <= self.rise <= 1 - self.share,
            "the rise of After must end within the training, got a share of {share} and a rise of {rise}: lower one of them",
            share=self.share,
            rise=self.rise,
        )

    @property
    def most(self) -> float:
        return max(0.0, self.value)

    @property
    def least(self) -> float:
        return min(0.0, self.value)

    def at(self, done: Any) -> Any:
        if not self.rise:
            return self.value * (done >= self.share)
        risen = (done - self.share) / self.rise
        return self.value * (risen * (risen > 0) * (risen < 1) + (risen >= 1))  # for numbers and for tensors

    def of(self, number: int, count: int) -> Curve:
        return self


@dataclass(frozen=True)
class InTurn(Part):
    """A group of losses that stop one after the other, at equal distances; the last stops at the end of `share`."""

    share: float = 0.5  # of all steps
    value: float = 1.0  # of each loss, until it stops

    def __post_init__(self) -> None:
        require(
            0 <= self.share <= 1,
            "the share of InTurn must be in [0, 1], got {share}: write 0.5 for half",
            share=self.share,
        )

    @property
    def most(self) -> float:
        return self.value

    @property
    def least(self) -> float:
        return 0.0

    def at(self, done: Any) -> Any:
        return self.of(1, 1).at(done)

    def of(self, number: int, count: int) -> Curve:
        """The curve of one loss of the group; `number` is counted from 1."""
        return Until(self.share * number / count, self.value)


@dataclass(frozen=True)
class Linear(Part):
    """A weight that changes linearly from one value to another."""

    first: float = 1.0  # before the first step
    last: float = 0.0  # after the last

    @property
    def most(self) -> float:
        return max(self.first, self.last)

    @property
    def least(self) -> float:
        return min(self.first, self.last)

    def at(self, done: Any) -> Any:
        return self.first + (self.last - self.first) * done

    def of(self, number: int, count: int) -> Curve:
        return self


@dataclass(frozen=True)
class Exponential(Part):
    """A weight that changes exponentially from one value to another."""

    first: float = 1.0  # before the first step
    last: float = 0.1  # after the last

    def __post_init__(self) -> None:
        require(
            self.first > 0 and self.last > 0,
            "the ends of Exponential must be over 0, got {first} and {last}: use Linear to end at 0",
            first=self.first,
            last=self.last,
        )

    @property
    def most(self) -> float:
        return max(self.first, self.last)

    @property
    def least(self) -> float:
        return min(self.first, self.last)

    def at(self, done: Any) -> Any:
        return self.first * (self.last / self.first) ** done

    def of(self, number: int, count: int) -> Curve:
        return self


@dataclass(frozen=True)
class Slanted(Part):
    """A slanted triangle: a short linear rise, then a long linear fall (Howard and Ruder 2018)."""

    cut: float = 0.1  # share of all steps in which it rises
    ratio: float = 32.0  # the largest value divided by the smallest
    value: float = 1.0  # the largest value

    def __post_init__(self) -> None:
        require(0 < self.cut < 1, "the cut of Slanted must be in (0, 1), got {cut}: write 0.1 for 10%", cut=self.cut)
        require(self.ratio >= 1, "the ratio of Slanted must be 1 or more, got {ratio}", ratio=self.ratio)

    @property
    def most(self) -> float:
        return self.value

    @property
    def least(self) -> float:
        return self.value / self.ratio

    def at(self, done: Any) -> Any:
        rises = 1 * (done < self.cut)
        height = rises * done / self.cut + (1 - rises) * (1 - done) / (1 - self.cut)  # for numbers and for tensors
        return self.value * (1 + height * (self.ratio - 1)) / self.ratio

    def of(self, number: int, count: int) -> Curve:
        return self

    def times(self, factor: float) -> Slanted:
        """The curve with all values multiplied."""
        return Slanted(self.cut, self.ratio, self.value * factor)


def at(value: float | Curve, done: Any) -> Any:
    """The value after this share of the training; `done` None: at the end."""
    return value if isinstance(value, int | float) else value.at(1.0 if done is None else done)


def most(value: float | Curve) -> float:
    """The largest value."""
    return value if isinstance(value, int | float) else value.most


def least(value: float | Curve) -> float:
    """The smallest value."""
    return value if isinstance(value, int | float) else value.least


def of(value: float | Curve, number: int, count: int) -> float | Curve:
    """The value for one loss of a group; `number` is counted from 1. It is the same for all, unless the losses stop in turn."""
    return value if isinstance(value, int | float) else value.of(number, count)
