"""Turns: tracks that take turns get their share of the steps, read the rows that they read alone, and continue after a stop."""

from __future__ import annotations

import json
from collections import Counter

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, SEED, Case
from unmask.contracts.contract import Contract
from unmask.data.loader import TRACK_BITS
from unmask.data.turns import TurnLoader
from unmask.recipe import Stage

ROWS = 2
STEPS = 20
STOP = 7  # steps before the stop


def take_turns(case: Case) -> None:
    """Check the tracks of the steps of each stage, and the rows after a stop."""
    place = None
    for stage in case.recipe.schedule:
        whole = _open(case, stage, place)
        found = [whole.batch(ROWS) for _ in range(STEPS)]
        _check_shares(case, stage, found)
        _check_stop(case, stage, place, found)
        place = _saved(whole.after_stage())


def _open(case: Case, stage: Stage, place: object) -> TurnLoader:
    loader = case.mixture.loader(case.recipe, LENGTH, SEED, place, ROWS, stage=stage)  # type: ignore[arg-type]
    assert isinstance(loader, TurnLoader)
    return loader


def _saved(state: object) -> object:
    """A state as a checkpoint keeps it."""
    return json.loads(json.dumps(state))


def _check_shares(case: Case, stage: Stage, found: list[Batch]) -> None:
    """Every batch has one track, and no track is more than one step above its share."""
    counts: Counter[str] = Counter()
    numbers = {name: number for number, name in enumerate(case.recipe.all_tracks())}
    for step, batch in enumerate(found, 1):
        ((track, rows),) = batch.tracks
        counts[track] += 1
        expect(rows == len(batch.ids) and set((batch.row >> TRACK_BITS).tolist()) == {numbers[track]},
               f"All rows of a step must come from one track, {track!r}, but their numbers are those of other tracks.")  # fmt: skip
        for name, choices in case.recipe.all_tracks(stage).items():
            expect(counts[name] < choices.share * step + 1, f"After {step} steps the track {name!r} must have had at most one step more "
                   f"than its share of {choices.share:.3f}, but it had {counts[name]}.")  # fmt: skip
    for name, choices in case.recipe.all_tracks(stage).items():
        least = choices.share * STEPS - len(numbers)
        expect(counts[name] >= least, f"After {STEPS} steps the track {name!r} must have had at least {least:.1f} of them, but it had "
               f"{counts[name]}.")  # fmt: skip


def _check_stop(case: Case, stage: Stage, place: object, found: list[Batch]) -> None:
    """A loader that is stopped in the middle of a step, saved and opened continues with the same rows."""
    first = _open(case, stage, place)
    for _ in range(STOP):
        first.batch(ROWS)
    half = first.batch(ROWS // 2)
    second = _open(case, stage, _saved(first.state()))
    again = [_joined(half, second.batch(ROWS - ROWS // 2)), *(second.batch(ROWS) for _ in range(STEPS - STOP - 1))]
    for one, two in zip(found[STOP:], again, strict=True):
        expect(one.tracks[0][0] == two.tracks[0][0] and torch.equal(one.ids, two.ids) and torch.equal(one.row, two.row),
               "A loader that was stopped and opened again must continue with the same rows of the same tracks, but they differ.")  # fmt: skip


def _joined(one: Batch, two: Batch) -> Batch:
    return one.replace(ids=torch.cat((one.ids, two.ids)), row=torch.cat((one.row, two.row)))


CONTRACTS = (
    Contract("turns", "Tracks that take turns get their share of the steps, also after a stop.", take_turns,
             lambda case: case.recipe.takes_turns),
)  # fmt: skip
