"""Plan: the number of steps of a training, and the progress at each step.

Progress goes from 0 to 1 and never falls. The learning rate, the curves of weights and the stages follow it. So a plan may
change during training (if the machine is slower or faster than expected), and progress still reaches 1 at the last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Moment:
    """One step of a training, with the progress that the learning rate and the curves depend on."""

    step: int  # counted from 1
    before: float  # progress when the step begins
    after: float  # progress when it ends
    pace: float = 1.0  # the length of the rows of the step, as a share of the usual length


@dataclass(frozen=True)
class Plan:
    """A plan for the rest of a training: the remaining progress is divided evenly among the remaining steps."""

    steps: int  # the number of the last step
    since: int = 0  # the plan is valid after this step
    progress: float = 0.0  # progress after this step

    def at(self, step: int) -> float:
        """Progress after a step."""
        if step >= self.steps:
            return 1.0
        return self.progress + (1 - self.progress) * (step - self.since) / (self.steps - self.since)

    def moment(self, step: int) -> Moment:
        return Moment(step, self.at(step - 1), self.at(step))

    def changed(self, step: int, steps: int) -> Plan:
        """A plan with another number of steps, valid after this step."""
        return Plan(max(steps, step + 1), step, self.at(step))


def leg_at(ends: Sequence[float], moment: Moment) -> int:
    """The number of the stage of a step, given the progress at which each stage ends: the stage at the middle of the step."""
    middle = (moment.before + moment.after) / 2
    return min(sum(middle >= end for end in ends), len(ends) - 1)


class Planner(Protocol):
    """Decides the plan, and may change it during training."""

    def plan(self, done: int) -> Plan:
        """The plan that is valid after this number of steps."""

    def due(self) -> bool:
        """Whether `look` should be called now, even if no log record is due."""

    def affords(self) -> bool:
        """Whether the budget allows a validation and a checkpoint now."""

    def look(self, done: int, leg: int) -> None:
        """Measure the speed after `done` steps, the last of them in stage `leg`, and change the plan if necessary."""

    def aside(self, seconds: float) -> None:
        """Report that a validation and a checkpoint took this time."""

    def spent(self) -> float:
        """Seconds of the budget that are used."""

    def left(self) -> float | None:
        """Seconds of the budget that are left; None if the budget is not in time."""


@dataclass(frozen=True)
class Fixed:
    """A fixed number of steps, known from the start."""

    steps: int

    def plan(self, done: int) -> Plan:
        return Plan(self.steps)

    def due(self) -> bool:
        return False

    def affords(self) -> bool:
        return True

    def look(self, done: int, leg: int) -> None:
        """A fixed plan never changes."""

    def aside(self, seconds: float) -> None:
        """A fixed plan does not depend on time."""

    def spent(self) -> float:
        return 0.0

    def left(self) -> float | None:
        return None
