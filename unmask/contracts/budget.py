"""Budget: every rule hides its share of each row to within one unit, also when the share changes during training."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from unmask import curves
from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, ROWS, SEED, Case, Way, hides_units, ways_by_units
from unmask.contracts.contract import Contract
from unmask.contracts.hiding import Applied, applied
from unmask.hide.choice import places
from unmask.hide.units import ordinary

LONG = 4 * LENGTH
FALLING = curves.Linear(first=0.4, last=0.15)


def kept(case: Case) -> None:
    """The budget of each rule in each row."""
    for way in ways_by_units(case):
        for step in applied(case, way, case.rows(way, ROWS, LONG)):
            _check(case, way, step, curves.at(step.rule.budget, None))


def falling(case: Case) -> None:
    """The same with a budget that falls while the network is trained; the number of places stays the same."""
    for way in ways_by_units(case):
        for step in applied(case, way, case.rows(way, ROWS, LONG)):
            rule = dataclasses.replace(step.rule, budget=FALLING)
            shapes = {_at(case, way, rule, step.before, done) for done in (0.0, 0.5, 1.0)}
            expect(len(shapes) == 1, f"In {way} the number of places for targets must not change during training, and it takes the "
                   f"values {sorted(shapes)}.")  # fmt: skip


def _at(case: Case, way: Way, rule: Any, before: Batch, done: float) -> int:
    """Check a rule when this share of the training is done; returns the number of places."""
    after = rule.apply(before.replace(progress=torch.tensor(done)), case.vocabulary, SEED)
    _check(case, way, Applied(rule, before, after), FALLING.at(done))
    return len(after.targets["tokens"].where)


def _check(case: Case, way: Way, step: Applied, share: float) -> None:
    text, length = ordinary(step.before, case.vocabulary), step.before.shape[1]
    most = places(step.rule.share, length, least=step.rule.units.least)
    asked, found = (text.sum(1) * share).round().clamp(1, most), step.chosen.sum(1)
    slack = _largest(step) * (1 if step.before.reuse is None else 2)  # the two halves of a row have a budget each
    far = (found - asked).abs() > slack
    expect(not far.any(), f"In {way} a row must hide {share:.0%} of its tokens to within one unit, and {found.tolist()} tokens are "
           f"hidden where {[int(n) for n in asked]} were asked for.")  # fmt: skip
    expect(
        (found > 0).all(), f"In {way} every row must hide something, and {int((found == 0).sum())} rows hide nothing."
    )


def _largest(step: Applied) -> Tensor:
    """B, the tokens of the largest unit of each row, less one for units of one token; of units that are cut, of a part."""
    labels = step.rule.units.parts(step.before, SEED, step.visit)
    labels = step.rule.units.label(step.before, SEED, step.visit) if labels is None else labels
    size = torch.zeros(len(labels), int(labels.max()) + 2, dtype=torch.long)
    size = size.scatter_add(1, labels.clamp(min=0), (labels >= 0).long()).amax(1)
    return torch.where(size == 1, 0, size)


CONTRACTS = (
    Contract("budget", "Every rule hides its share of each row to within one unit.", kept, hides_units),
    Contract("falling budget", "A budget may fall during training, and the number of places stays the same.", falling, hides_units),
)  # fmt: skip
