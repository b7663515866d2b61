"""The sweep: successive halving (Jamieson and Talwalkar 2016) chooses the settings of an entry before it is compared.

All candidates are trained with a small budget. The better half is trained again with twice the budget, and so on, until one
is left. Each run starts from random weights, because the curve of the learning rate spans a whole run. With R rounds the
budgets are B / 2^R, ..., B / 2, where B is the smallest budget of the comparison: the winner's run with B belongs to the
comparison itself.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.comparison.entry import Entry
from unmask.comparison.request import Asked, Job, Request
from unmask.errors import require
from unmask.train.budget import scaled

LOSS = "loss"
# settings that change what is predicted: the losses of two values cannot be compared
_CHANGE_LOSS = ("arrange", "hide", "layout", "predict", "see", "system.", "tracks")
_KEEP_LOSS = ("system.backbone.", "system.generator.")
_STAGE = re.compile(r"schedule\.[^.]+\.(weights|hide|length)")  # of a stage: the loss is a weighted sum over rows


@dataclass(frozen=True)
class Tuned:
    """What a sweep has found so far."""

    entry: Entry | None  # the entry with the best settings; None while the sweep runs
    jobs: tuple[Job, ...]  # that must be run next
    runs: tuple[Job, ...]  # all runs of the sweep so far
    error: str = ""  # why the sweep cannot go on


def grid(sweep: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of the values of a sweep: ("optimise.rate=3e-4",), ("optimise.rate=7e-4",) ..."""
    axes = []
    for one in sweep:
        name, _, values = one.partition("=")
        listed = [value for value in _split(values) if value]
        require(
            len(listed) > 1,
            "--sweep needs a setting with several values, such as optimise.rate=3e-4,7e-4, got {one!r}",
            one=one,
        )
        axes.append([f"{name}={value}" for value in listed])
    return list(itertools.product(*axes))


def _split(values: str) -> list[str]:
    """The values between commas, except the commas inside brackets: (0.9,0.98) is one value."""
    found, depth = [""], 0
    for letter in values:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [value.strip() for value in found]


def check_sweep(request: Request) -> None:
    """Refuse a sweep whose losses cannot be compared, and settings that a recipe does not have."""
    for one in request.sweep:
        name = one.partition("=")[0]
        require(
            not name.startswith("tokenizer"),
            "{name} has no effect in a sweep, because all runs of an entry read the same data: compare entries on text, such as "
            "roberta+tokenizer.vocab=4000 and roberta+tokenizer.vocab=8000",
            name=name,
        )
        changes = name.startswith(_CHANGE_LOSS) and not name.startswith(_KEEP_LOSS) or _STAGE.match(name)
        require(
            request.sweep_by != LOSS or not changes,
            "{name} changes what is predicted, so the losses of its values cannot be compared: choose by the score of a "
            "task, with --sweep-by TASK",
            name=name,
        )
    for asked in request.asked:
        for settings in grid(request.sweep) if request.sweep else ():
            asked.entry.with_settings(settings).made()


def tuned(asked: Asked, request: Request, measured: Mapping[str, dict[str, Any]]) -> Tuned:
    """Where the sweep of an entry stands. `measured`: the results of finished runs by the names of their jobs."""
    if not request.sweep:
        return Tuned(asked.entry, (), ())
    left, rounds, runs = _candidates(asked.entry, request.sweep), 0, []
    total = math.ceil(math.log2(len(left)))
    while len(left) > 1:
        budget = scaled(asked.budgets[0], 2.0 ** (rounds - total))
        jobs = [asked.job(entry, budget, 0, tuning=True) for entry in left]
        runs += jobs
        missing = tuple(job for job in jobs if job.name not in measured)
        if missing:
            return Tuned(None, missing, tuple(runs))
        ranked = sorted(jobs, key=lambda job: _badness(measured[job.name], request.sweep_by))
        good = [job for job in ranked if math.isfinite(_badness(measured[job.name], request.sweep_by))]
        if not good:
            why = measured[jobs[0].name].get("error") or f"none of its runs has a {request.sweep_by}"
            return Tuned(None, (), tuple(runs), f"the sweep with a budget of {budget} found no settings: {why}")
        left, rounds = [job.entry for job in good[: math.ceil(len(left) / 2)]], rounds + 1
    best = left[0]
    return Tuned(Entry(asked.entry.name, best.recipe, best.size, best.variant, best.settings), (), tuple(runs))


def _candidates(entry: Entry, sweep: Sequence[str]) -> list[Entry]:
    found = []
    for settings in grid(sweep):
        changed = entry.with_settings(settings)
        found.append(
            Entry("+".join([entry.name, *settings]), entry.recipe, entry.size, entry.variant, changed.settings)
        )
    return found


def _badness(result: dict[str, Any], by: str) -> float:
    """What the sweep makes small: the held-out loss, or minus the score of a task; infinite for a run that failed."""
    if result.get("error"):
        return math.inf
    if by == LOSS:
        loss = result["pretraining"].get("held_out_loss")
        return math.inf if loss is None else float(loss)
    scores = [-one["score"] if one["higher"] else one["score"] for one in result["scores"].get(by, {}).values()]
    return sum(scores) / len(scores) if scores else math.inf
