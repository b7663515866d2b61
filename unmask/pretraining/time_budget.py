"""A budget in time: the number of steps is estimated from the measured speed, and estimated again during the run.

Every change of plan is written to `plan.jsonl` before it takes effect. A resumed run repeats these plans, then measures
again.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from unmask.errors import require
from unmask.train import Plan, checkpoint
from unmask.type_check import check_types

PLANS = "plan.jsonl"
NOTICED = 0.02  # the plan changes if its remaining steps are wrong by more than this share
EVENT_SHARE = 0.05  # largest share of the time for validations and checkpoints
ENDING = 0.3  # seconds that the program needs to exit


class TimeBudget:
    """Plans the steps of a run that must end within a time."""

    def __init__(
        self, seconds: float, ends: Sequence[float], costs: Sequence[float], folder: Path, *, began: float,
        step_seconds: float, event_seconds: float, earlier: float = 0.0, now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`ends`: the progress at which each stage ends; `costs`: operations of one step of each stage; `step_seconds`: measured
        time of a step of the first stage; `event_seconds`: time of a validation and a checkpoint; `earlier`: seconds used
        before a resume."""
        self.seconds, self.ends, self.costs, self.file = seconds, ends, costs, folder / PLANS
        self.began, self.earlier, self.now = began, earlier, now
        self.event, self.last_event = event_seconds, now()
        self.step_seconds, self.leg = step_seconds, 0
        self.samples: deque[tuple[float, int]] = deque()  # seconds and steps between calls of `look`, in this stage
        self.mark: tuple[float, int] | None = None  # time and step of the last call of `look`
        self.plans = read_plans(folder)
        # written again without an incomplete last line, which a kill may leave
        checkpoint.write_text("".join(_line(plan) for plan in self.plans), self.file)
        if not self.plans:
            self._add(Plan(self._steps_left(0.0)))

    def plan(self, done: int) -> Plan:
        return next((plan for plan in reversed(self.plans) if plan.since <= done), self.plans[0])

    def spent(self) -> float:
        return self.earlier + self.now() - self.began

    def left(self) -> float:
        return max(0.0, self.seconds - self.spent())

    def due(self) -> bool:
        return self.mark is not None and self.now() - self.mark[0] > max(0.25, self.seconds / 100)

    def affords(self) -> bool:
        return (self.now() - self.last_event) * EVENT_SHARE >= self.event * (1 - EVENT_SHARE)

    def look(self, done: int, leg: int) -> None:
        self._measure(done, leg)
        plan = self.plan(done)
        if done < self.plans[-1].since:  # after a resume, the recorded plans are followed first
            return
        left, wanted = plan.steps - done, self._steps_left(plan.at(done))
        if abs(wanted - left) > max(0.5, NOTICED * left):
            self._add(plan.changed(done, done + wanted))

    def aside(self, seconds: float) -> None:
        self.event, self.last_event = max(seconds, self.event * 0.8), self.now()
        if self.mark is not None:
            self.mark = (self.mark[0] + seconds, self.mark[1])

    def _measure(self, done: int, leg: int) -> None:
        """Measure the steps since the last call. The first steps of a stage do not count, because they compile and warm up."""
        now = self.now()
        if leg != self.leg:
            self.step_seconds *= self.costs[leg] / self.costs[self.leg]
            self.leg = leg
            self.samples.clear()
        elif self.mark is not None and done > self.mark[1]:
            self.samples.append((now - self.mark[0], done - self.mark[1]))
            while sum(took for took, _ in self.samples) - self.samples[0][0] > max(2.0, self.seconds / 10):
                self.samples.popleft()
            self.step_seconds = sum(took for took, _ in self.samples) / sum(steps for _, steps in self.samples)
        self.mark = (now, done)

    def _steps_left(self, progress: float) -> int:
        """The number of steps that fit in the remaining time, if they divide the remaining progress evenly."""
        left = self.seconds - self.spent() - ENDING - self.event  # the last checkpoint is always written
        left *= 1 - min(EVENT_SHARE, 20 * (1 - progress) * self.event / max(left, 1e-9)) if left > 0 else 1
        starts = [0.0, *self.ends[:-1]]
        shares = [max(0.0, end - max(progress, start)) for start, end in zip(starts, self.ends, strict=True)]
        relative = sum(share * cost for share, cost in zip(shares, self.costs, strict=True)) / max(sum(shares), 1e-9)
        mean = self.step_seconds * relative / self.costs[self.leg]
        return max(1, int(left / max(mean, 1e-9)))

    def _add(self, plan: Plan) -> None:
        """Add a plan. It is written to the file before it takes effect."""
        write_plan(self.file, plan)
        self.plans.append(plan)


def write_plan(file: Path, plan: Plan) -> None:
    with file.open("a", encoding="utf-8") as target:
        target.write(_line(plan))
        target.flush()
        os.fsync(target.fileno())


def _line(plan: Plan) -> str:
    return json.dumps(asdict(plan)) + "\n"


def read_plans(folder: Path) -> list[Plan]:
    """The plans of a run, oldest first. An incomplete last line, left by a kill, never took effect and is skipped."""
    file, plans = folder / PLANS, []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            check_types({"steps": int, "since": int, "progress": float}, values, "")
            plans.append(Plan(**values))
        except (ValueError, TypeError, AttributeError):
            require(
                number == len(lines),
                "{file} is damaged in line {number}: the run cannot be resumed",
                file=file,
                number=number,
            )
    require(
        bool(plans) or checkpoint.newest(folder) is None,
        ("{file} is missing or damaged: the run cannot be resumed"),
        file=file,
    )
    return plans
