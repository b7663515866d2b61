"""Packing: an example gets the same vectors in a row with other examples as in a row alone."""

from __future__ import annotations

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, Case, StageTrack
from unmask.contracts.contract import Contract
from unmask.contracts.leak import vectors
from unmask.contracts.rows import cut, some_rows
from unmask.system.tracks import view

ROWS = 3
MANY = 16  # enough to contain rows with several examples, if `arrange` packs
LONG = 4 * LENGTH
CLOSE = 1e-5


def alone(case: Case) -> None:
    """Check packed rows. If the recipe never packs, rows are cut into several examples."""
    for way in case.ways:
        packed = _packed(case, way)
        for name in case.recipe.system.networks:
            _check(case, way, name, packed)


def _packed(case: Case, way: StageTrack) -> Batch:
    """The rows with the most examples. If each row is one example, rows are cut into several examples."""
    rows = case.rows(way, MANY, LONG)
    if int(rows.example.max()) == 0:
        return cut(case.rows(way, ROWS, LONG))
    return some_rows(rows, rows.example.amax(1).argsort(descending=True, stable=True)[:ROWS].tolist())


def _check(case: Case, way: StageTrack, network: str, packed: Batch) -> None:
    seen = view(way.choices, packed)
    with torch.no_grad():
        together = vectors(getattr(case.system, network)(seen)[0], seen)
        for row in range(ROWS):
            for number in range(int(packed.example[row].max()) + 1):
                mine = packed.example[row] == number
                lone = view(way.choices, _one(packed, row, mine))
                found = vectors(getattr(case.system, network)(lone)[0], lone)[0]
                far = (found - together[row, mine]).abs().amax()
                expect(far < CLOSE, f"In {way} example {number} of row {row} must get the same vectors in a packed row as alone, "
                       f"but they differ by {far:.2g} in system.{network}.")  # fmt: skip


def _one(batch: Batch, row: int, mine: torch.Tensor) -> Batch:
    """A batch that contains only one example of a row."""
    fields = {name: getattr(batch, name)[row : row + 1, mine] for name in ("ids", "segment", "position")}
    columns = {name: column[row : row + 1, mine] for name, column in batch.columns.items()}
    per_row = {name: values[row : row + 1] for name, values in batch.per_row.items()}
    address = {name: getattr(batch, name)[row : row + 1] for name in ("row", "visit")}
    example = torch.zeros_like(fields["ids"])
    return batch.replace(**fields, **address, columns=columns, per_row=per_row, example=example, tracks=())


CONTRACTS = (
    Contract(
        "packing", "An example gets the same vectors in a packed row as alone.", alone, lambda case: case.packs
    ),
)  # fmt: skip
