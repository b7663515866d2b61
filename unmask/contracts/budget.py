"""Budget: every rule hides its share of each row, within one unit, also when the share changes during training."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from unmask import curves
from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, ROWS, SEED, Case, StageTrack, hides_units
from unmask.contracts.contract import Contract
from unmask.contracts.hiding import Applied, apply, by_units
from unmask.contracts.rows import predicted
from unmask.hide.choice import places
from unmask.hide.units import ordinary

LONG = 4 * LENGTH
FALLING = curves.Linear(first=0.4, last=0.15)


def kept(case: Case) -> None:
    """Check the budget of each rule in each row."""
    for way in case.ways:
        rows = case.rows(way, ROWS, LONG)
        for step in by_units(case, way, rows):
            _check(way, step, _text(case, rows), curves.at(step.rule.budget, None))


def falling(case: Case) -> None:
    """The same with a budget that falls during training. The number of places must stay the same."""
    for way in case.ways:
        rows = case.rows(way, ROWS, LONG)
        for step in by_units(case, way, rows):
            rule = dataclasses.replace(step.rule, budget=FALLING)
            shapes = {_at(case, way, rule, step.before, rows, done) for done in (0.0, 0.5, 1.0)}
            expect(len(shapes) == 1, f"In {way} the number of places for targets must not change during training, but it takes the "
                   f"values {sorted(shapes)}.")  # fmt: skip


def _at(case: Case, way: StageTrack, rule: Any, before: Batch, rows: Batch, done: float) -> int:
    """Check a rule when this share of training is done. Returns the number of places."""
    step = apply(case, rule, before.replace(progress=torch.tensor(done)))
    _check(way, step, _text(case, rows), FALLING.at(done))
    return sum(len(targets.where) for targets in step.after.targets.values())


def _text(case: Case, rows: Batch) -> Tensor:
    """B, the number of tokens of each row that may be hidden."""
    return ordinary(rows, case.vocabulary).sum(1)


def _check(way: StageTrack, step: Applied, text: Tensor, share: float) -> None:
    most = places(curves.most(step.rule.budget), step.before.shape[1], least=step.rule.units.least)
    available = _available(step)
    # the share of a first rule is of the tokens in its units; that of a later rule, of the whole text
    of = text if predicted(step.before).any() else text.minimum(available)
    wanted = (of * share).round().clamp(1, most).minimum(available)
    found = step.chosen.sum(1)
    slack = _largest(step) * (1 if step.before.reuse is None else 2)  # each half of a row has its own budget
    far = (found - wanted).abs() > slack
    expect(not far.any(), f"In {way} a row must hide {share:.0%} of its tokens, within one unit, but {found.tolist()} tokens are "
           f"hidden and {[int(n) for n in wanted]} are expected.")  # fmt: skip
    expect((found > 0).all(), f"In {way} every row must hide a token, but {int((found == 0).sum())} rows hide none.")


def _labels(step: Applied) -> Tensor:
    """B T, the units of a rule, or the parts of units that may be cut; -1: no unit."""
    parts = step.rule.units.parts(step.before, SEED, step.visit)
    labels: Tensor = step.rule.units.label(step.before, SEED, step.visit) if parts is None else parts
    return labels


def _available(step: Applied) -> Tensor:
    """B, the number of tokens in units without a hidden token. It may be smaller than the budget."""
    labels, before = _labels(step), predicted(step.before)
    slot = labels.clamp(min=0)
    holds = torch.zeros_like(labels).scatter_reduce(1, slot, (before & (labels >= 0)).long(), "amax").gather(1, slot)
    return ((labels >= 0) & (holds == 0)).sum(1)


def _largest(step: Applied) -> Tensor:
    """B, the allowed distance from the budget: the tokens of the row's largest unit, or 0 if every unit is one token."""
    labels = _labels(step)
    size = torch.zeros(len(labels), int(labels.max()) + 2, dtype=torch.long)
    size = size.scatter_add(1, labels.clamp(min=0), (labels >= 0).long()).amax(1)
    return torch.where(size == 1, 0, size)


CONTRACTS = (
    Contract("budget", "Every rule hides its share of each row, within one unit.", kept, hides_units),
    Contract("falling budget", "A budget may fall during training, and the number of places stays the same.", falling, hides_units),
)  # fmt: skip
