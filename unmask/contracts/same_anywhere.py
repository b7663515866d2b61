"""Same anywhere: hiding depends only on the row, the visit and the seed."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from unmask.axes import rules
from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, SEED, Case, StageTrack, hides_units, is_by_units
from unmask.contracts.contract import Contract
from unmask.contracts.hiding import hidden_by
from unmask.contracts.rows import by_row, some_rows

ROWS = 6
ORDER = (4, 1, 5)
COPIES = 3
LONG = 3 * LENGTH


def pure(case: Case) -> None:
    """Check that a row is hidden in the same way in any batch, in any order of rows and on any device."""
    for way in case.ways:
        rows = case.rows(way, ROWS)
        together, length = case.hide(way, rows), rows.shape[1]
        _check_same(way, together, case.hide(way, some_rows(rows, ORDER)), ORDER, "in another batch", length)
        for device in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
            moved = case.hide(way, rows.to(device)).to("cpu")
            _check_same(way, together, moved, range(ROWS), f"on the device {device!r}", length)


def _check_same(way: StageTrack, together: Batch, part: Batch, order: Any, words: str, length: int) -> None:
    chosen = torch.tensor(list(order))
    if together.decoder is not None and part.decoder is not None:
        _check_same(way, together.decoder, part.decoder, order, f"{words}, in the decoder", length)
    for name in ("ids", "rank", "order"):
        one, two = getattr(together, name), getattr(part, name)
        expect(
            one is None or torch.equal(one[chosen], two),
            f"In {way} a row must have the same {name} {words}, but it differs.",
        )
    for name, targets in together.targets.items():
        one, two = by_row(targets, together, length), by_row(part.targets[name], part, length)
        used = one["weight"][chosen] > 0  # an unused place may have any value
        for field, values in one.items():
            expect(
                torch.equal(values[chosen] * used, two[field] * used) and torch.equal(used, two["weight"] > 0),
                f"In {way} a row must have the same targets {name!r} {words}, but their {field!r} differs.",
            )


def visits(case: Case) -> None:
    """Check that another visit hides other tokens. With static masking, check that the versions repeat."""
    for way in case.ways:
        rows = case.rows(way, ROWS, LONG)
        for rule in filter(is_by_units, rules(way.choices.hide)):
            new, static = (dataclasses.replace(rule, copies=copies) for copies in (None, COPIES))  # type: ignore[type-var]
            first, later, around = (_where(case, static, rows, visit) for visit in (0, 1, COPIES))
            expect(
                torch.equal(first, around),
                f"In {way} with {COPIES} versions of each row, visit {COPIES} must hide the tokens of visit 0, but it does not.",
            )
            expect(not torch.equal(first, later), f"In {way} two versions of a row must differ, but they are the same.")
            first, around = (_where(case, new, rows, visit) for visit in (0, COPIES))
            expect(
                not torch.equal(first, around), f"In {way} another visit must hide other tokens, but it hides the same."
            )


def _where(case: Case, rule: Any, rows: Batch, visit: int) -> Tensor:
    visited = rows.replace(visit=rows.visit + visit)
    return hidden_by(case, rule, visited, rule.apply(visited, case.vocabulary, SEED))


CONTRACTS = (
    Contract("same anywhere", "A row is hidden in the same way in any batch, in any order and on any device.", pure),
    Contract("visits", "Another visit hides other tokens, unless the number of versions is fixed.", visits, hides_units),
)  # fmt: skip
