"""Tracks that take turns: each step reads one track, with its own rows, objectives and memory."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from tests.contracts import every
from unmask import recipes
from unmask.contracts import Case
from unmask.contracts.outcomes import applying
from unmask.data import Blocks, ContinuingRows, SentenceOrder
from unmask.errors import UserError
from unmask.hide import Mask, Masked, Next, Tokens
from unmask.pretraining import Mixture, pretrain
from unmask.recipe import Recipe, Stage, Track
from unmask.see import LeftToRight
from unmask.settings import override
from unmask.system import check_training, objectives, step_flops
from unmask.train import Machine, Trainer

TRACKS = {
    "order": Track(arrange=SentenceOrder()),
    "masked": Track(arrange=Blocks(), hide=Masked(units=Tokens(), budget=0.3, replace=Mask()), predict=("tokens",)),
}
STAGES = (
    Stage(share=0.3, rows=4, length=32, turns={"main": 1}),
    Stage(share=0.7, rows=4, length=32, turns={"main": 1, "order": 2, "masked": 1}),
)


def turning(*settings: str) -> Recipe:
    base = recipes.get("bert", size="tiny", settings=["optimise.warmup=0.1", "system.backbone.dropout=0.1"])
    return override(base.replace(tracks=TRACKS, schedule=STAGES, shrink=False), list(settings))


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(turning(), every.SMALL)


def test_the_contracts_hold_for_a_recipe_whose_tracks_take_turns(case):
    for contract in applying(case):
        if contract.name != "learns":  # it takes long, and runs for the recipes of the package
            contract.check(case)


def test_each_track_has_its_own_losses(case):
    assert list(objectives(case.recipe)) == ["tokens", "sentence", "order"]
    system = case.build()
    counts = {way.track: system.hide(case.rows(way))[1] for way in case.ways}
    assert {name: list(found) for name, found in counts.items()} == {
        "main": ["tokens", "sentence"], "order": ["tokens", "order"], "masked": ["tokens"],
    }  # fmt: skip


def test_a_step_changes_only_the_heads_of_its_track(case):
    trainer = Trainer(case.build(), case.recipe.optimise, Machine(), 0)
    masked = next(way for way in case.ways if way.track == "masked")
    trainer.gradients([case.rows(masked)], {}, 1)
    with_gradient = {name for name, p in trainer.system.named_parameters() if p.grad is not None}
    assert any(name.startswith("predict.tokens") for name in with_gradient)
    assert not any(name.startswith(("predict.order", "predict.sentence")) for name in with_gradient)


def test_the_log_counts_the_steps_of_each_track_and_names_their_losses(case, tmp_path):
    for _ in pretrain(case.recipe, [case.data], tmp_path / "run", budget="20steps", device="cpu"):
        pass
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert sum(lines[-1]["turns"].values()) == 20
    assert lines[-1]["turns"]["main"] >= 6  # the first stage
    before = {}
    for line in (line for line in lines if "turns" in line):
        (track,) = (name for name, count in line["turns"].items() if count != before.get(name, 0))
        assert ("loss_order" in line, "loss_sentence" in line) == (track == "order", track == "main")
        before = line["turns"]
    assert {"validation_loss_order", "validation_loss_sentence", "validation_loss_tokens"} <= lines[-1].keys()


def test_each_track_has_its_own_memory(case):
    """Rows that continue, and rows with another memory, in turn."""
    base = every.case("transformer-xl").recipe
    stage = dataclasses.replace(base.schedule[0], rows=2, length=16, turns={"main": 1, "other": 1})
    recipe = base.replace(tracks={"other": Track(arrange=ContinuingRows())}, schedule=(stage,))
    data = every.case("transformer-xl").data
    loader = Mixture.open([data]).loader(recipe, 16, 0, None, 2, stage=stage)
    trainer = Trainer(every.case("transformer-xl").build(recipe), recipe.optimise, Machine(), 0)
    kept = {}
    for step in range(6):
        batch = loader.batch(2)
        others = {key: value for key, value in trainer.memory.items() if key != _key(batch)}
        trainer.gradients([batch], {}, step)
        assert all(trainer.memory[key] is value for key, value in others.items())
        kept[batch.tracks[0][0]] = trainer.memory[_key(batch)]
    assert set(kept) == {"main", "other"}
    assert not torch.equal(kept["main"].layers, kept["other"].layers)


def _key(batch):
    return 0 if batch.tracks[0][0] == "main" else f"{batch.tracks[0][0]} 0"


def test_a_track_may_read_its_own_data(case, tmp_path):
    other = every.SMALL.of(case.recipe.tokenizer, frozenset({"phrase"}))[1]
    recipe = case.recipe.replace(tracks=TRACKS | {"order": dataclasses.replace(TRACKS["order"], data=(str(other),))})
    mixture = Mixture.open([case.data])
    mixture.check(recipe)
    loader = mixture.loader(recipe, 32, 0, None, 4, stage=recipe.schedule[1])
    found = {batch.tracks[0][0]: set(batch.columns) for batch in (loader.batch(4) for _ in range(12))}
    assert "phrase" in found["order"]
    assert "phrase" not in found["main"]


def test_a_track_without_turns_is_not_read_and_its_objective_is_not_built():
    recipe = turning("schedule.*.turns.order=0")
    assert list(objectives(recipe)) == ["tokens", "sentence"]
    check_training(recipe)


def test_a_stage_costs_what_its_tracks_cost():
    recipe = turning("tracks.masked.see=LeftToRight", "tracks.masked.hide=Next")
    alone = [
        step_flops(recipe.alone(name).replace(predict=dict(recipe.predict)), 300)[1] for name in ("main", "masked")
    ]
    mixed = step_flops(override(recipe, ["schedule.1.turns={'main': 1, 'masked': 3}"]), 300)[1]
    assert mixed == pytest.approx(0.25 * alone[0] + 0.75 * alone[1], rel=0.01)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"schedule": (Stage(share=0.5), dataclasses.replace(STAGES[1], share=0.5))}, "schedule.0 has no turns"),
        ({"schedule": (dataclasses.replace(STAGES[1], share=1.0, turns={"ordr": 1}),)}, "must name tracks, got ordr"),
        ({"tracks": TRACKS | {"order": Track(share=0.5)}}, "tracks.order.share has no effect"),
        ({"schedule": (Stage(),)}, "the track 'order' is never read: set tracks.order.share=0.5"),
        ({"tracks": {"x": Track(share=0.5, data=("a",))}, "schedule": (Stage(),)}, "tracks.x.data is only for tracks"),
    ],
)
def test_tracks_and_turns_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(UserError, match=words):
        turning().replace(**changes)


def test_no_turn_at_all_is_refused():
    with pytest.raises(UserError, match="no track has a turn in a stage"):
        Stage(turns={"main": 0})


def test_an_objective_of_another_kind_with_a_known_name_is_refused():
    recipe = turning().replace(tracks=TRACKS | {"tokens": Track(arrange=SentenceOrder())})
    recipe = recipe.replace(schedule=(dataclasses.replace(STAGES[1], share=1.0, turns={"main": 1, "tokens": 1}),))
    with pytest.raises(UserError, match="the track 'tokens' has another objective with the name 'tokens'"):
        every.case("bert").build(recipe)


def test_a_view_of_its_own_is_seen_in_its_steps(case):
    recipe = case.recipe.replace(tracks=TRACKS | {"masked": Track(hide=Next(), see=LeftToRight(), predict=("tokens",))})
    view = Case(recipe, every.SMALL)
    way = next(way for way in view.ways if way.track == "masked")
    assert torch.equal(view.hide(way, view.rows(way)).rank, view.rows(way).position)
