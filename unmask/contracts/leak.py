"""Leak: when a token changes, outputs that may not see it do not change, and outputs that may see it do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from unmask.batch import Batch, Hidden
from unmask.contracts.broken import expect
from unmask.contracts.case import Case, StageTrack
from unmask.contracts.contract import Contract
from unmask.contracts.rows import cut, with_other_token
from unmask.see import visible, visible_before

ROWS = 4
STEP = 5  # every fifth place of a row is changed, one at a time
NEAR = 3  # tokens; the trace of a token in cells becomes too small for a number in the end
MOST = 0.9  # at least this share of the outputs that may see a changed token must change
EXACT = frozenset({"both sides", "prefix"})  # facts of views in which every token sees everything that it may see
DIRECTIONS = EXACT | {"left", "right", "future hidden"}


def networks(case: Case) -> None:
    """Check every network of the system, in every track."""
    for way in case.ways:
        for batch in _read(case, way):
            for name in case.recipe.system.networks:
                _check_network(case, getattr(case.system, name), batch, f"the network system.{name} in {way}")


def _read(case: Case, way: StageTrack) -> Iterator[Batch]:
    """Rows of the track, hidden. If each row is one example and could hold several, also the same rows cut into several."""
    rows = case.rows(way, ROWS)
    yield case.hide(way, rows)
    if case.packs and int(rows.example.max()) == 0:
        yield case.hide(way, cut(rows))


def _check_network(case: Case, network: Any, batch: Batch, what: str) -> None:
    sees, real = visible(batch), batch.real
    moved_of_seeing = seeing_count = 0
    with torch.no_grad():
        before = vectors(network(batch)[0], batch)
        for place in range(0, batch.shape[1], STEP):
            after = vectors(network(with_other_token(batch, place, case.vocabulary.size))[0], batch)
            moved = (after - before).abs().amax(-1) > 0
            blind = moved & ~sees[:, :, place]
            expect(not blind.any(), f"In {what}, another token at place {place} must not change positions that may not see it, but "
                   f"{int(blind.sum())} positions changed.")  # fmt: skip
            seeing = sees[:, :, place] & real & real[:, place, None]
            moved_of_seeing, seeing_count = (
                moved_of_seeing + int((moved & seeing).sum()),
                seeing_count + int(seeing.sum()),
            )
    expect(moved_of_seeing > MOST * seeing_count, f"In {what}, at least {MOST:.0%} of the positions that see a changed "
           f"token must change, but {moved_of_seeing} of {seeing_count} changed.")  # fmt: skip


def vectors(hidden: Hidden, batch: Batch) -> Tensor:
    """B T D, all vectors that objectives may read at every position. Vectors of decoder rows are at other positions."""
    decoded = None if batch.decoder is not None else hidden.decoded
    return torch.cat([one for one in (hidden.last, decoded, hidden.entities) if one is not None], -1)


def directions(case: Case) -> None:
    """Check that the first half of every vector sees only its own token and earlier ones, the second half only its own and
    later ones, in every layer; and that they see all of these."""
    for way in case.ways:
        batch = case.hide(way, case.rows(way, ROWS))
        with torch.no_grad():
            before = case.system.backbone(batch)[0].layers[1:]
            for place in range(0, batch.shape[1], STEP):
                after = case.system.backbone(with_other_token(batch, place, case.vocabulary.size))[0].layers[1:]
                for one, other in zip(before, after, strict=True):
                    _check_halves(batch, (one - other).abs(), place)


def _check_halves(batch: Batch, difference: Tensor, place: int) -> None:
    """`difference`: B T D, how much each vector moved when the token at `place` changed."""
    places = torch.arange(batch.shape[1], device=batch.ids.device)
    used = batch.real & batch.real[:, place, None]
    halves = zip(("first", "second"), difference.chunk(2, -1), (places >= place, places <= place), strict=True)
    for name, half, sees in halves:
        moved = half.amax(-1) > 0
        wrong = moved & used & ~sees
        expect(not wrong.any(), f"Another token at place {place} must not change the {name} half of vectors that may not see it, but "
               f"{int(wrong.sum())} changed.")  # fmt: skip
        near = used & sees & ((places - place).abs() <= NEAR)
        expect(moved[near].all(), f"Another token at place {place} must change the {name} half of the vectors near it that see "
               f"it, but {int((~moved[near]).sum())} did not change.")  # fmt: skip


def second_stream(case: Case) -> None:
    """Check that a query of the second stream sees neither its target nor the tokens after it in the order."""
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
                expect(not blind.any(), f"Another token at place {place} must not change queries of the second stream that "
                       f"may not see it, but {int(blind.sum())} queries changed.")  # fmt: skip
                seeing = sees[:, place] & used & batch.real[targets.where // batch.shape[1], place]
                expect(moved[seeing].all(), f"Another token at place {place} must change every query that sees it, but "
                       f"{int((~moved[seeing]).sum())} queries did not change.")  # fmt: skip


def view(case: Case) -> None:
    """Check that the ranks of a view agree with the facts that it gives."""
    for way in case.ways:
        raw = case.rows(way, ROWS)
        hidden = case.hide(way, raw)
        rows = raw if hidden.decoder is None else hidden  # only then tokens may move
        sees = visible(hidden) & rows.real[:, :, None]
        for fact, may in _allowed(rows).items():
            more, less = sees & ~may, ~sees & may
            wrong = more | less if fact in EXACT else more
            expect(
                fact not in way.choices.see.gives or not wrong.any(),
                f"In {way} the view declares {fact!r}, but {int(more.any(2).sum())} tokens see tokens that they may not see, and "
                f"{int(less.any(2).sum())} tokens do not see tokens that they must see.",
            )


def _allowed(rows: Batch) -> dict[str, Tensor]:
    """By fact: B T T, True where the query (second dimension) may see the key (third) in a view that gives the fact."""
    query, key = rows.position[:, :, None], rows.position[:, None, :]
    same = (rows.example[:, :, None] == rows.example[:, None, :]) & rows.real[:, :, None]
    query_in_second, key_in_second = rows.segment[:, :, None] > 0, rows.segment[:, None, :] > 0  # of two texts
    past = same & (key <= query)
    return {
        "left": past,
        "future hidden": past,
        "right": same & (key >= query),
        "both sides": same,
        "prefix": same & (~key_in_second | (query_in_second & (key <= query))),
    }


CONTRACTS = (
    Contract("leak", "When a token changes, outputs that may not see it do not change; outputs that may see it do.", networks),
    Contract(
        "directions", "One half of each vector sees only the tokens before, the other half only those after.", directions,
        lambda case: "two halves" in case.gives,
    ),
    Contract(
        "second stream", "A query of the second stream sees neither its own token nor the tokens after it in the order.",
        second_stream, lambda case: "second stream" in case.gives,
    ),
    Contract(
        "view", "Tokens see each other as the view declares.", view, lambda case: bool(DIRECTIONS & case.gives)
    ),
)  # fmt: skip
