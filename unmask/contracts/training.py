"""Training: a recipe overfits eight rows, and two half batches give the gradients of the whole batch."""

from __future__ import annotations

from typing import Any

import torch

from unmask.batch import Batch
from unmask.contracts.broken import expect
from unmask.contracts.case import ROWS, SEED, Case, without_dropout
from unmask.contracts.contract import Contract
from unmask.contracts.rows import InTurn
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.system.tracks import joined, rows_of
from unmask.train import Fixed, Intervals, LoopStage, Machine, Trainer, train
from unmask.train.loop import memory_key

# A factor of the recipe's rate, and the largest number of steps. A higher rate needs fewer steps, but a recipe without
# bias correction learns only at its own rate.
TRIES = ((3.0, 200), (1.0, 320))
LOOK = 16  # steps between two measurements of the losses
WARMUP = 0.04  # share of the steps: a rate that is far too high for the first steps would undo what they learn
LEARNED = 0.25  # the mean of every loss must fall below this
LONG = 64
CLOSE = 1e-5


def learns(case: Case) -> None:
    """Check that every loss falls on eight rows that are repeated, at one of the rates in TRIES."""
    for faster, steps in TRIES:
        means = _overfit(case, faster, steps)
        if max(means.values()) < LEARNED:
            return
    for name, mean in means.items():
        expect(
            mean < LEARNED,
            f"The loss {name!r} must fall below {LEARNED} on eight rows in {steps} steps, but it is {mean:.3f}.",
        )


def _overfit(case: Case, faster: float, steps: int) -> dict[str, float]:
    """The means of all losses, as soon as they are small enough, or after the last step."""
    found, trainer = batches(case), _trainer(case, _eager(case.recipe, faster))
    stages, means = [LoopStage(1.0, ROWS, ROWS, lambda _: InTurn(found))], {}
    look = LOOK * len(found)
    for _ in train(trainer, stages, Fixed(steps * len(found)), folder=None, pace=Intervals(log=look, save=look)):
        means = {name: mean for batch in found for name, mean in _means(trainer, batch).items()}
        if max(means.values()) < LEARNED:
            break
    return means


def _eager(recipe: Recipe, faster: float) -> Recipe:
    rate = faster * recipe.optimise.rate
    settings = [f"optimise.rate={rate}", "optimise.curve=constant", f"optimise.warmup={WARMUP}"]
    return override(without_dropout(recipe), settings)


def _means(trainer: Trainer, batch: Batch) -> dict[str, float]:
    """The mean of every loss on the training rows, with the memory of these rows."""
    trainer.system.eval()
    with torch.no_grad():
        hidden, counts = trainer.system.hide(batch)
        losses = trainer.system.step(hidden, trainer.memory.get(memory_key(batch, 0)))[0]
    trainer.system.train()
    expect(set(counts) == set(losses), f"`hide` must count the losses that `step` computes, but it counts {sorted(counts)}, and "
           f"`step` computes {sorted(losses)}.")  # fmt: skip
    return {name: float(loss.total / loss.count) for name, loss in losses.items()}


def accumulates(case: Case) -> None:
    """Compare the means and gradients of one batch of eight rows with those of two micro-batches of four."""
    for batch in batches(case, LONG):
        _accumulates(case, batch)


def _accumulates(case: Case, batch: Batch) -> None:
    recipe = without_dropout(case.recipe)
    found: list[tuple[dict[str, Any], list[Any]]] = []
    for portions in ([batch], _halves(batch)):
        trainer = _trainer(case, recipe)
        means = trainer.gradients(portions, {}, 1)
        found.append((means, [p.grad for p in trainer.system.parameters()]))
    (means, whole), (halves, parts) = found
    for name, mean in means.items():
        expect(abs(mean - halves[name]) < CLOSE * (1 + abs(mean)), f"The mean of {name!r} must be the same in one batch of eight rows and in "
               f"two of four, but it is {mean:.6f} and {halves[name]:.6f}.")  # fmt: skip
    for one, two in zip(whole, parts, strict=True):
        expect(
            (one is None) == (two is None),
            "The same parameters must have gradients in one batch and in two, but they differ.",
        )
        expect(one is None or torch.allclose(one, two, atol=CLOSE), "The gradients of one batch of eight rows must be equal to those of two "
               f"batches of four, but a tensor differs by {0.0 if one is None else float((one - two).abs().amax()):.2g}.")  # fmt: skip


def batches(case: Case, length: int | None = None) -> list[Batch]:
    """Eight rows of the first stage; if tracks take turns, some rows of each track."""
    if case.recipe.takes_turns:
        rows = ROWS if length else ROWS // 4  # few rows of each track are learned sooner
        return [case.rows(way, rows, length or case.recipe.schedule[0].length) for way in case.ways]
    return [_mixed(case, length)]


def _mixed(case: Case, length: int | None) -> Batch:
    """Eight rows of the first stage. Each track has its share of them, and at least one row."""
    stage = case.recipe.schedule[0]
    tracks = [way for way in case.ways if way.choices == case.recipe.all_tracks(stage)[way.track]]
    counts = [max(1, round(ROWS * way.choices.share)) for way in tracks]
    counts[0] += ROWS - sum(counts)
    parts = [case.rows(way, count, length or stage.length) for way, count in zip(tracks, counts, strict=True)]
    if len(parts) == 1:
        return parts[0]
    return joined(parts).replace(tracks=tuple((w.track, n) for w, n in zip(tracks, counts, strict=True)))


def _halves(batch: Batch) -> list[Batch]:
    middle = batch.shape[0] // 2
    return [_part(batch, 0, middle), _part(batch, middle, batch.shape[0])]


def _part(batch: Batch, begin: int, end: int) -> Batch:
    """The rows from `begin` to `end` of a batch, with their tracks."""
    tracks, first = [], 0
    for name, count in batch.tracks:
        inside = min(end, first + count) - max(begin, first)
        tracks += [(name, inside)] if inside > 0 else []
        first += count
    return rows_of(batch, begin, end).replace(tracks=tuple(tracks))


def _trainer(case: Case, recipe: Recipe) -> Trainer:
    return Trainer(case.build(recipe), recipe.optimise, Machine(), SEED)


CONTRACTS = (
    Contract("learns", "Every loss falls on eight rows that are repeated.", learns, trains=True),
    Contract("accumulation", "Two half batches give the means and gradients of the whole batch.", accumulates,
             lambda case: "compared rows" not in case.gives, trains=True),
)  # fmt: skip
