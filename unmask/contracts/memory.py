"""Memory: what is remembered depends on nothing that comes later, and a text that begins sees nothing of it."""

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
    """A memory keeps the first tokens of a batch, as they were computed from what they may see."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        with torch.no_grad():
            state = case.system.step(batch, None)[1]
            for place in range(0, batch.shape[1], STEP):
                other = case.system.step(with_other_token(batch, place, case.vocabulary.size), None)[1]
                _check_kept(batch, (other.layers - state.layers).abs().amax((1, 3)) > 0, place)


def _check_kept(batch: Batch, moved: torch.Tensor, place: int) -> None:
    """`moved`: B M, which places of the memory another token at `place` moves."""
    count = batch.reuse or batch.shape[1]
    new = moved[:, -count:]  # what the memory keeps of this batch is behind what it kept before
    expect(
        not moved[:, :-count].any(), f"The token at place {place} must not change what was remembered before the batch."
    )
    blind = new & ~visible(batch)[:, :count, place]
    expect(not blind.any(), f"The token at place {place} must not change what is remembered of tokens that may not see it, and "
           f"{int(blind.sum())} places of the memory moved.")  # fmt: skip
    expect(place >= count or new[:, place].all(), f"What is remembered of the token at place {place} must depend on that "
           "token, and it does not in some rows.")  # fmt: skip


def read(case: Case) -> None:
    """A row that continues reads the memory; a row that begins a text does not."""
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
                       f"a text {words} the memory, and of {ROWS} rows {int(moved.sum())} read it.")  # fmt: skip


def _differ(system: Any, batch: Batch, one: Any, other: Any) -> torch.Tensor:
    """B, whether two memories give a row other vectors."""
    first, second = (system.backbone(batch, state)[0].last for state in (one, other))
    return (first - second).abs().flatten(1).amax(1) > 0


def _remembers(case: Case) -> bool:
    return "memory" in case.gives and case.recipe.arrange.continuous


CONTRACTS = (
    Contract("memory kept", "What is remembered never depends on a token that comes later.", kept, _remembers),
    Contract("memory read", "A row that continues a text reads the memory; a row that begins one does not.", read, _remembers),
)  # fmt: skip
