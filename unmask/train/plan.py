"""Plan: how many steps a training has, and how far it is at each of them.

Progress goes from 0 to 1 and never falls. The learning rate, the curves of weights and the stages follow it, so a plan
may change on the way (a machine turns out slower or faster) and the training is still a whole one at its last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Moment:
    """One step of a training, as the learning rate and the curves of weights see it."""

    step: int  # counted from 1
    before: float  # progress when the step begins
    after: float  # progress when it ends


@dataclass(frozen=True)
class Plan:
    """What is left of a training after a step, spread evenly over the steps that are left."""

    steps: int  # the number of the last step
    since: int = 0  # the plan holds after this step
    progress: float = 0.0  # reached by then

    def at(self, step: int) -> float:
        """Progress after a step."""
        if step >= self.steps:
            return 1.0
        return self.progress + (1 - self.progress) * (step - self.since) / (self.steps - self.since)

    def moment(self, step: int) -> Moment:
        return Moment(step, self.at(step - 1), self.at(step))

    def changed(self, step: int, steps: int) -> Plan:
        """Another number of steps, from after this step on."""
        return Plan(max(steps, step + 1), step, self.at(step))


def leg_at(ends: Sequence[float], moment: Moment) -> int:
    """Which leg a step belongs to, given the progress at which each leg ends: the one that holds its middle."""
    middle = (moment.before + moment.after) / 2
    return min(sum(middle >= end for end in ends), len(ends) - 1)


class Planner(Protocol):
    """Who may change the plan while the training runs."""

    def plan(self, done: int) -> Plan:
        """The plan that holds after so many steps."""

    def due(self) -> bool:
        """Whether it is time to look at the clock, though no record is due."""

    def affords(self) -> bool:
        """Whether a validation and a checkpoint may be made now: they must not eat up the budget."""

    def look(self, done: int, leg: int) -> None:
        """At a record, after so many steps, the last of them in this leg: look at the clock, and change the plan if need
        be."""

    def aside(self, seconds: float) -> None:
        """A validation and a checkpoint took this long."""

    def spent(self) -> float:
        """Seconds of the budget that are gone."""

    def left(self) -> float | None:
        """Seconds of the budget that are left; none if it is not in time."""


@dataclass(frozen=True)
class Fixed:
    """A number of steps that was known from the start."""

    steps: int

    def plan(self, done: int) -> Plan:
        return Plan(self.steps)

    def due(self) -> bool:
        return False

    def affords(self) -> bool:
        return True

    def look(self, done: int, leg: int) -> None:
        """Nothing to change."""

    def aside(self, seconds: float) -> None:
        """Nothing to plan for."""

    def spent(self) -> float:
        return 0.0

    def left(self) -> float | None:
        return None
