"""Memory: the memory of a token never depends on later tokens, and a row that begins a text does not read the memory."""

from __future__ import annotations

from typing import Any

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import Case
from unmask.contracts.contract import Contract
from unmask.contracts.rows import with_other_token
from unmask.see import visible

ROWS = 4
STEP = 3


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
            other = state.replace(layers=state.layers.flip(-1))
            for begins, words in ((False, "must read"), (True, "must not read")):
                flags = torch.full((ROWS,), begins, device=batch.ids.device)
                row = batch.replace(per_row=batch.per_row | {"begins": flags})
                moved = _differ(case.system, row, state, other)
                expect(bool(moved.all()) != begins and bool(moved.any()) != begins, f"A row that {'begins' if begins else 'continues'} "
                       f"a text {words} the memory, but {int(moved.sum())} of {ROWS} rows read it.")  # fmt: skip


def _differ(system: Any, batch: Batch, one: Any, other: Any) -> torch.Tensor:
    """B, whether a row gets different vectors with two different memories."""
    first, second = (system.backbone(batch, state)[0].last for state in (one, other))
    return (first - second).abs().flatten(1).amax(1) > 0


def _remembers(case: Case) -> bool:
    return "memory" in case.gives and case.recipe.arrange.continuous


CONTRACTS = (
    Contract("memory kept", "The memory of a token never depends on a later token.", kept, _remembers),
    Contract("memory read", "A row that continues a text reads the memory; a row that begins one does not.", read, _remembers),
)  # fmt: skip
