"""Leak: change a token, and no output moves that may not see it; those that may see it do move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from unmask.batch import Batch, Hidden
from unmask.contracts.broken import expect
from unmask.contracts.case import Case, Way
from unmask.contracts.contract import Contract
from unmask.contracts.rows import cut, with_other_token
from unmask.see import visible, visible_before

ROWS = 4
STEP = 5  # every fifth place of a row is changed, one at a time
MOST = 0.9  # at least this share of the outputs that may see a changed token must move
EXACT = frozenset({"both sides", "prefix"})  # facts of views in which every token sees all that it may
DIRECTIONS = EXACT | {"left", "right", "future hidden"}


def networks(case: Case) -> None:
    """Every network of the system, in every track."""
    for way in case.ways:
        for batch in _read(case, way):
            for name in case.recipe.system.networks:
                _check_network(case, getattr(case.system, name), batch, f"the network system.{name} in {way}")


def _read(case: Case, way: Way) -> Iterator[Batch]:
    """Hidden rows as the track arranges them; and, where a row is one example, the same rows cut into several."""
    rows = case.rows(way, ROWS)
    yield case.hide(way, rows)
    if int(rows.example.max()) == 0:
        yield case.hide(way, cut(rows))


def _check_network(case: Case, network: Any, batch: Batch, what: str) -> None:
    sees, real = visible(batch), batch.real
    moved_of_seeing = seeing_count = 0
    with torch.no_grad():
        before = vectors(network(batch)[0])
        for place in range(0, batch.shape[1], STEP):
            after = vectors(network(with_other_token(batch, place, case.vocabulary.size))[0])
            moved = (after - before).abs().amax(-1) > 0
            blind = moved & ~sees[:, :, place]
            expect(not blind.any(), f"In {what}, another token at place {place} must not move what may not see it, and "
                   f"{int(blind.sum())} positions moved.")  # fmt: skip
            seeing = sees[:, :, place] & real & real[:, place, None]
            moved_of_seeing, seeing_count = (
                moved_of_seeing + int((moved & seeing).sum()),
                seeing_count + int(seeing.sum()),
            )
    expect(moved_of_seeing > MOST * seeing_count, f"In {what}, at least {MOST:.0%} of the positions that see a changed "
           f"token must move, and {moved_of_seeing} of {seeing_count} moved.")  # fmt: skip


def vectors(hidden: Hidden) -> Tensor:
    """B T D, all that objectives read at every position."""
    return hidden.last if hidden.decoded is None else torch.cat((hidden.last, hidden.decoded), -1)


def second_stream(case: Case) -> None:
    """What the second stream asks at a target sees neither the target nor what comes after it in the order."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        targets = batch.targets["tokens"]
        sees, used = visible_before(batch).flatten(0, 1)[targets.where], targets.weight > 0  # N key
        with torch.no_grad():
            before = case.system.backbone(batch)[0].query
            for place in range(0, batch.shape[1], STEP):
                changed = with_other_token(batch, place, case.vocabulary.size)
                moved = (case.system.backbone(changed)[0].query - before).abs().amax(-1) > 0
                blind = moved & ~sees[:, place] & used
                expect(not blind.any(), f"Another token at place {place} must not move what the second stream asks where it "
                       f"may not see that place, and {int(blind.sum())} queries moved.")  # fmt: skip
                seeing = sees[:, place] & used & batch.real[targets.where // batch.shape[1], place]
                expect(moved[seeing].all(), f"Another token at place {place} must move every query that sees it, and "
                       f"{int((~moved[seeing]).sum())} queries stayed.")  # fmt: skip


def view(case: Case) -> None:
    """The ranks of a view are as its facts say."""
    for way in case.ways:
        rows = case.rows(way, ROWS)
        sees = visible(case.hide(way, rows)) & rows.real[:, :, None]
        for fact, may in _allowed(rows).items():
            more, less = sees & ~may, ~sees & may
            wrong = more | less if fact in EXACT else more
            expect(
                fact not in way.choices.see.gives or not wrong.any(),
                f"In {way} the view declares {fact!r}, and {int(more.any(2).sum())} tokens see what they may not, "
                f"{int(less.any(2).sum())} do not see what they may.",
            )


def _allowed(rows: Batch) -> dict[str, Tensor]:
    """B query key, by fact: who may see whom at most in a view that gives it."""
    query, key = rows.position[:, :, None], rows.position[:, None, :]
    same = (rows.example[:, :, None] == rows.example[:, None, :]) & rows.real[:, :, None]
    asks, asked = rows.segment[:, :, None] > 0, rows.segment[:, None, :] > 0  # in the second text
    past = same & (key <= query)
    return {
        "left": past,
        "future hidden": past,
        "right": same & (key >= query),
        "both sides": same,
        "prefix": same & (~asked | (asks & (key <= query))),
    }


CONTRACTS = (
    Contract("leak", "No output moves when a token changes that it may not see; those that may see it move.", networks),
    Contract(
        "second stream", "A query of the second stream sees neither its own token nor what comes after it in the order.",
        second_stream, lambda case: "second stream" in case.gives,
    ),
    Contract(
        "view", "Who sees whom is what the view declares.", view, lambda case: bool(DIRECTIONS & case.gives)
    ),
)  # fmt: skip
