"""Saving: an interrupted run resumes to the same bytes, and a saved run gives the outputs of the trained system."""

from __future__ import annotations

import hashlib
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from unmask.backbone.auto_dropout import OFTEN
from unmask.contracts.broken import expect
from unmask.contracts.case import SEED, Case
from unmask.contracts.contract import Contract
from unmask.infer.model import open_run
from unmask.pretraining import pretrain
from unmask.pretraining.choose_dropout import with_dropout
from unmask.pretraining.measure import legs_of
from unmask.pretraining.mixture import Mixture
from unmask.recipe import Recipe
from unmask.recipe_file import file_used_by
from unmask.run import from_json, to_json
from unmask.settings import flat, override
from unmask.train import Fixed, Trainer, train, training_machine

STEPS, STOP = 10, 5
FEW = 2
ROWS = 4  # in a step
DROPOUT = 0.1  # in all places: the random state of dropout must be resumed too


def resumes(case: Case) -> None:
    """Compare a run of ten steps with a run of five steps, a stop and five more: all files must have the same bytes."""
    whole, parts = case.folder / "whole", case.folder / "parts"
    dropout = [f"{name}={DROPOUT}" for name in flat(case.recipe) if name.endswith("dropout")]
    shared = case.recipe.tracks and not case.recipe.takes_turns  # with fewer rows, a track could have none
    few = [] if shared else [f"schedule.*.rows={ROWS}"]
    recipe = override(case.recipe, [*dropout, *few])
    try:
        _run(case, recipe, whole)
        steps: list[int] = []
        for record in pretrain(recipe, [case.data], parts, **_options(), stop=lambda: len(steps) >= STOP):
            steps.extend([record["step"]] if "step" in record else [])
        expect(steps[-1] < STEPS, f"A run must stop when `stop` returns True, but it made all {STEPS} steps.")
        for _ in pretrain(recipe, [case.data], parts, **_options(), resume=True):
            pass
        _compare(whole / "state" / str(STEPS), parts / "state" / str(STEPS))
    finally:
        _remove(whole, parts)


def _options() -> dict[str, Any]:
    return {"budget": f"{STEPS}steps", "device": "cpu", "seed": SEED}


def _run(case: Case, recipe: Any, out: Path, steps: int = STEPS) -> None:
    for _ in pretrain(recipe, [case.data], out, **_options() | {"budget": f"{steps}steps"}):
        pass


def _compare(whole: Path, parts: Path) -> None:
    names = sorted({path.name for path in chain(whole.iterdir(), parts.iterdir()) if path.suffix == ".safetensors"})
    for name in names:
        expect(
            (whole / name).is_file() and (parts / name).is_file(),
            f"Both runs must have saved {name}, but one of them did not.",
        )
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (whole, parts)]
        expect(digests[0] == digests[1], f"After {STEPS} steps, {name} of an interrupted and resumed run must have the same bytes as in an "
               "uninterrupted run, but it differs.")  # fmt: skip


def round_trip(case: Case) -> None:
    """Compare a system that was trained in memory with the saved run of the same training."""
    out, recipe = case.folder / "saved", with_dropout(case.recipe, OFTEN)  # a run writes down what it chooses
    try:
        _run(case, recipe, out, FEW)
        opened = open_run(out, device="cpu", recipe=file_used_by(recipe))
        expect(opened.recipe == recipe, "The recipe of a run must be the recipe that was trained, but it differs.")
        _compare_systems(case, _trained(case, recipe), opened.system)
    finally:
        _remove(out)


def _trained(case: Case, recipe: Recipe) -> Any:
    """The system after the same training in memory. No file is written."""
    trainer = Trainer(case.build(recipe), recipe.optimise, training_machine("cpu"), SEED)
    stages = legs_of(recipe, Mixture.open([case.data]), [stage.rows for stage in recipe.schedule], SEED, [])
    for _ in train(trainer, stages, Fixed(FEW), folder=None):
        pass
    if trainer.average is not None:
        trainer.average.exchange()  # a run is opened with the averaged weights
    return trainer.system.eval()


def _compare_systems(case: Case, trained: Any, opened: Any) -> None:
    """Compare what both compute for the same rows: the losses of hidden rows, and the vectors of rows as they are."""
    for way in case.ways:
        rows = case.rows(way, 2)
        with torch.no_grad():
            batch = case.hide(way, rows, trained)
            losses, again = (system.step(batch, None)[0] for system in (trained, opened))
            for name, loss in losses.items():
                expect(torch.equal(loss.total, again[name].total), f"In {way} an opened run must give the loss {name!r} of the trained "
                       f"system, {float(loss.total):.6f}, but it gives {float(again[name].total):.6f}.")  # fmt: skip
            one, two = (system.look(rows, way.track).last for system in (trained, opened))
            expect(torch.equal(one, two), f"In {way} an opened run must give the vectors of the trained system, but they differ by "
                   f"{float((one - two).abs().amax()):.2g}.")  # fmt: skip


def json(case: Case) -> None:
    """Check that a recipe is equal to itself after it is written and read."""
    again = from_json(to_json(case.recipe), file=file_used_by(case.recipe))
    different = [name for name, value in flat(case.recipe).items() if flat(again).get(name) != value]
    expect(
        again == case.recipe,
        f"A recipe that is written as JSON and read must be the same, but it differs in {different}.",
    )


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


CONTRACTS = (
    Contract("resume", "Ten steps give the same bytes as five steps, a stop and five more.", resumes, trains=True),
    Contract("round trip", "A saved and opened run gives the outputs of the trained system.", round_trip),
    Contract("JSON", "A recipe is the same after it is written as JSON and read.", json),
)  # fmt: skip
