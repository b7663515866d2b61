"""Means, intervals and paired differences of few runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# the 97.5% point of Student's t distribution, for 1, 2, 3 ... degrees of freedom
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
      2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)  # fmt: skip
_NORMAL = 1.96
Scores = Mapping[int, Mapping[int, float]]  # by pretraining seed, then by adapting seed


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95% interval. The interval is over `of`: what it says holds for other seeds of that kind."""

    mean: float
    low: float | None  # None: one run has no interval
    high: float | None
    of: str  # "pretraining seeds", "adapting seeds" or "one run"
    runs: int  # the number of values that the interval is made from

    @property
    def differs(self) -> bool:
        """Whether a difference is outside the interval around 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def estimate(scores: Scores) -> Estimate:
    """The mean over all runs. The interval is over the means of the pretraining seeds if there are several of them: the
    adapting seeds of one pretraining say nothing about another one."""
    if len(scores) > 1:
        return _interval([statistics.fmean(one.values()) for one in scores.values()], "pretraining seeds")
    values = list(next(iter(scores.values())).values())
    return _interval(values, "adapting seeds" if len(values) > 1 else "one run")


def difference(scores: Scores, base: Scores) -> Estimate | None:
    """The mean difference to another entry, over the seeds that both have; None if they share no seeds."""
    pairs = {
        seed: {other: found[other] - base[seed][other] for other in found if other in base[seed]}
        for seed, found in scores.items()
        if seed in base
    }
    pairs = {seed: found for seed, found in pairs.items() if found}
    return estimate(pairs) if pairs else None


def _interval(values: Sequence[float], of: str) -> Estimate:
    mean, number = statistics.fmean(values), len(values)
    if number < 2:
        return Estimate(mean, None, None, of, number)
    t = _T[number - 2] if number - 2 < len(_T) else _NORMAL
    half = t * statistics.stdev(values) / math.sqrt(number)
    return Estimate(mean, mean - half, mean + half, of, number)
