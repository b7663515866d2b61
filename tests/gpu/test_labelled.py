"""Labelled tracks and many tasks on a GPU: recorded steps train the weights that steps without a recording train."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.contracts import every
from tests.data.labelled_files import rows, write
from unmask import recipes
from unmask.contracts import make_case
from unmask.contracts.case import without_dropout
from unmask.data import Labelled
from unmask.predict import AnswerSteps
from unmask.pretraining.measure import legs_of
from unmask.recipe import Stage, Track
from unmask.tasks import Classify
from unmask.train import Fixed, Machine, Momentum, Trainer, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
PAIRS = [{"text_a": row["query"], "text_b": row["passage"], "label": row["label"]} for row in rows("rank", 60)]


def test_recorded_steps_of_labelled_tracks_train_the_same_weights(tmp_path):
    files = {
        kind: write(tmp_path / f"{kind}.jsonl", rows(kind, 60)) for kind in ("classify", "tag", "choose", "number")
    }
    tracks = {kind: Track(arrange=Labelled(file=str(file))) for kind, file in files.items()}
    san = Classify(san=AnswerSteps(count=5, dropout=0.0))
    tracks["pairs"] = Track(arrange=Labelled(file=str(write(tmp_path / "pairs.jsonl", PAIRS)), task=san))
    stage = Stage(share=1.0, rows=8, length=32, turns=dict.fromkeys(("main", *tracks), 1.0))
    recipe = recipes.get("bert", size="tiny").replace(tracks=tracks, schedule=(stage,), shrink=False)
    case, found = (
        make_case(recipe.replace(optimise=Momentum(rate=0.01)), every.SMALL),
        [],
    )  # Adam would enlarge rounding errors
    plain = without_dropout(case.recipe)
    for recorded in (False, True):
        trainer = Trainer(case.build(plain), plain.optimise, Machine(device="cuda", recorded=recorded), 0)
        (*_, last) = train(trainer, legs_of(plain, case.mixture, [8], 0, []), Fixed(36), folder=None)
        assert set(last["turns"].values()) == {6}
        found.append({name: value.detach().cpu() for name, value in trainer.system.named_parameters()})
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")  # fmt: skip


def test_prediction_dropout_is_drawn_again_in_each_recorded_step(tmp_path):
    san = Classify(san=AnswerSteps(count=5, dropout=0.5))
    arrange = Labelled(file=str(write(tmp_path / "pairs.jsonl", PAIRS)), task=san)
    stage = Stage(share=1.0, rows=8, length=32, turns={"pairs": 1.0})
    recipe = recipes.get("bert", size="tiny").replace(tracks={"pairs": Track(arrange=arrange)}, schedule=(stage,), shrink=False)  # fmt: skip
    case = make_case(recipe, every.SMALL)
    trainer = Trainer(case.build(without_dropout(case.recipe)), case.recipe.optimise, Machine(device="cuda", recorded=True), 0)  # fmt: skip
    batch = replace(case.rows(case.ways[0]))
    losses = [float(trainer.gradients([batch], {}, step)["pairs"]) for step in range(1, 9)]
    assert len(set(losses[3:])) > 1
