"""Memory: it never depends on later tokens, it replaces the tokens before a row, and a row that begins a text does not read it."""

from __future__ import annotations

from typing import Any

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import Case
from unmask.contracts.contract import Contract
from unmask.contracts.rows import with_other_token
from unmask.see import visible
from unmask.tree import mapped

ROWS = 4
STEP = 3
CLOSE = 1e-5


def kept(case: Case) -> None:
    """Check that the memory of each token depends on that token, and only on tokens that it may see."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        with torch.no_grad():
            state = case.system.step(batch, None)[1]
            for place in range(0, batch.shape[1], STEP):
                other = case.system.step(with_other_token(batch, place, case.vocabulary.size), None)[1]
                _check_kept(batch, (other.layers - state.layers).abs().amax((1, 3)) > 0, place)


def _check_kept(batch: Batch, moved: torch.Tensor, place: int) -> None:
    """`moved`: B M, the places of the memory that change when the token at `place` changes."""
    count = batch.reuse or batch.shape[1]
    new = moved[:, -count:]  # the tokens of this batch come last in the memory
    expect(
        not moved[:, :-count].any(),
        f"The token at place {place} must not change the memory of earlier batches, but it does.",
    )
    blind = new & ~visible(batch)[:, :count, place]
    expect(not blind.any(), f"The token at place {place} must not change the memory of tokens that may not see it, but "
           f"{int(blind.sum())} places of the memory changed.")  # fmt: skip
    expect(place >= count or new[:, place].all(), f"The memory of the token at place {place} must depend on that "
           "token, but in some rows it does not.")  # fmt: skip


def read(case: Case) -> None:
    """Check that a row that continues a text reads the memory, and a row that begins a text does not."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        with torch.no_grad():
            state = case.system.step(batch, None)[1]
            other = mapped(state, lambda tensor: tensor.flip(-1) if tensor.is_floating_point() else tensor)
            for begins, words in ((False, "must read"), (True, "must not read")):
                flags = torch.full((ROWS,), begins, device=batch.ids.device)
                row = batch.replace(per_row=batch.per_row | {"begins": flags})
                moved = _differ(case.system, row, state, other)
                expect(bool(moved.all()) != begins and bool(moved.any()) != begins, f"A row that {'begins' if begins else 'continues'} "
                       f"a text {words} the memory, but {int(moved.sum())} of {ROWS} rows read it.")  # fmt: skip


def continued(case: Case) -> None:
    """Compare two parts of a row, the second read with the memory of the first, with the whole row read at once."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        half = batch.shape[1] // 2
        first, second = (_columns_of(batch, part) for part in (slice(half), slice(half, None)))
        with torch.no_grad():
            whole = case.system.backbone(batch)[0].last
            before, state = case.system.backbone(first, case.system.backbone.first_state(ROWS))
            after = case.system.backbone(second, state)[0].last
        far = (torch.cat((before.last, after), 1) - whole).abs().amax()
        expect(far < CLOSE, "Two parts of a row, the second read with the memory of the first, must get the vectors of the row "
               f"that is read at once, but they differ by {far:.2g}.")  # fmt: skip


def _columns_of(batch: Batch, part: slice) -> Batch:
    """Some columns of the rows, as rows that continue."""
    names = ("ids", "example", "segment", "position")
    fields = {name: getattr(batch, name)[:, part] for name in (*names, *(("rank",) if batch.rank is not None else ()))}
    return batch.replace(**fields, columns={n: c[:, part] for n, c in batch.columns.items()}, targets={}, per_row={})


def _differ(system: Any, batch: Batch, one: Any, other: Any) -> torch.Tensor:
    """B, whether a row gets different vectors with two different memories."""
    first, second = (system.backbone(batch, state)[0].last for state in (one, other))
    return (first - second).abs().flatten(1).amax(1) > 0


def _remembers(case: Case) -> bool:
    return "memory" in case.gives and case.recipe.arrange.continuous


CONTRACTS = (
    Contract("memory kept", "The memory of a token never depends on a later token.", kept,
             lambda case: _remembers(case) and "cells" not in case.gives),
    Contract("memory continued", "A row that is read in two parts, with a memory, gets the vectors of the whole row.", continued,
             lambda case: _remembers(case) and {"left", "memory"} <= case.gives),
    Contract("memory read", "A row that continues a text reads the memory; a row that begins one does not.", read, _remembers),
)  # fmt: skip
