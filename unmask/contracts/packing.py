"""Packing: an example in a row with others gets what it gets alone."""

from __future__ import annotations

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, Case, Way
from unmask.contracts.contract import Contract
from unmask.contracts.leak import vectors
from unmask.contracts.rows import cut, some_rows

ROWS = 3
MANY = 16  # among which are rows of several examples, if the arrangement packs
LONG = 4 * LENGTH
CLOSE = 1e-5


def alone(case: Case) -> None:
    """Rows as they are packed; of a recipe that never packs, rows cut into examples."""
    for way in case.ways:
        packed = _packed(case, way)
        for name in case.recipe.system.networks:
            _check(case, way, name, packed)


def _packed(case: Case, way: Way) -> Batch:
    """The rows with the most examples; where each row is one example, rows cut into several."""
    rows = case.rows(way, MANY, LONG)
    if int(rows.example.max()) == 0:
        return cut(case.rows(way, ROWS, LONG))
    return some_rows(rows, rows.example.amax(1).argsort(descending=True, stable=True)[:ROWS].tolist())


def _check(case: Case, way: Way, network: str, packed: Batch) -> None:
    seen = way.choices.see.apply(packed)
    with torch.no_grad():
        together = vectors(getattr(case.system, network)(seen)[0])
        for row in range(ROWS):
            for number in range(int(packed.example[row].max()) + 1):
                mine = packed.example[row] == number
                found = vectors(getattr(case.system, network)(way.choices.see.apply(_one(packed, row, mine)))[0])[0]
                far = (found - together[row, mine]).abs().amax()
                expect(far < CLOSE, f"In {way} example {number} of row {row} must get the same vectors in a packed row as alone, "
                       f"and they differ by {far:.2g} in system.{network}.")  # fmt: skip


def _one(batch: Batch, row: int, mine: torch.Tensor) -> Batch:
    """One example of a row as a batch of its own."""
    fields = {name: getattr(batch, name)[row : row + 1, mine] for name in ("ids", "segment", "position")}
    columns = {name: column[row : row + 1, mine] for name, column in batch.columns.items()}
    per_row = {name: values[row : row + 1] for name, values in batch.per_row.items()}
    address = {name: getattr(batch, name)[row : row + 1] for name in ("row", "visit")}
    example = torch.zeros_like(fields["ids"])
    return batch.replace(**fields, **address, columns=columns, per_row=per_row, example=example, tracks=())


CONTRACTS = (Contract("packing", "An example in a packed row gets what it gets alone.", alone),)
