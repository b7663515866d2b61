"""What a network remembers from one step to the next belongs to its streams, and is part of the checkpoint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests import command
from tests.data.made import loader_of
from tests.data.test_continuing import reader
from tests.small import vocabulary
from unmask import recipes
from unmask.backbone import LayerMemory
from unmask.batch import Batch, Hidden, Loss
from unmask.data import ContinuingRows
from unmask.errors import UserError
from unmask.pretraining import Mixture, pretrain
from unmask.pretraining.measure import _update_seconds, micro_rows, step_seconds
from unmask.pretraining.mixture import MICRO_TOKENS
from unmask.pretraining.validate import validator
from unmask.train import AdamW, Fixed, Intervals, LoopStage, Machine, Trainer, checkpoint, saved_tree, train
from unmask.tree import signature, tensors

STEPS, WIDTH = 12, 3


class Remembering(nn.Module):
    """A system that predicts nothing of use, but whose loss depends on all that went before in each stream."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, WIDTH))
        self.states: list[LayerMemory | None] = []

    def compile_parts(self, on: bool = True) -> None: ...

    def hide(self, batch: Batch, hide=None):
        return batch, {"sum": torch.tensor(float(batch.ids.numel()))}

    def step(self, batch: Batch, state: LayerMemory | None = None):
        self.states.append(state)
        now = (batch.ids % 7).float().mean(1)[:, None] * self.weight  # B D
        before = 0 if state is None else state.layers[:, 0].mean(1)
        vector = torch.tanh(now + before)
        memory = LayerMemory(vector.detach()[:, None, None].expand(-1, 1, 4, -1), torch.ones(len(batch.ids), 4).bool())
        return {"sum": Loss(vector.square().sum(), torch.tensor(float(batch.ids.numel())))}, memory

    def look(self, batch: Batch) -> Hidden:
        return Hidden((batch.ids[..., None].float(),))


def legs(*untils: int, rows: int = 5) -> list[LoopStage]:
    lengths = (16, 24, 32)

    def opened(length: int):
        return lambda state: loader_of([reader(ContinuingRows(), length=length)], [1.0], rows, state)

    ends = [until / untils[-1] for until in untils]
    return [LoopStage(until, rows, 2, opened(length)) for until, length in zip(ends, lengths, strict=False)]


def run(folder: Path | None, *untils: int, stop_at: int = 0, log: int = 1) -> Trainer:
    """Train to the end, or to a step; what is there already is resumed."""
    trainer = Trainer(Remembering(), AdamW(rate=0.01, warmup=0.1), Machine(), 0)
    done = iter(range(stop_at - 1)) if stop_at else iter(range(1000))
    for _ in train(trainer, legs(*untils), Fixed(untils[-1]), folder=folder, pace=Intervals(log=log, save=1000), resume=True,
                   stop=lambda: next(done, None) is None):  # fmt: skip
        pass
    return trainer


@pytest.mark.parametrize("stop_at", [1, 5, 11])
def test_a_resumed_run_remembers_what_the_uninterrupted_one_does(tmp_path, stop_at):
    whole = run(tmp_path / "whole", STEPS)
    run(tmp_path / "cut", STEPS, stop_at=stop_at)
    assert checkpoint.newest(tmp_path / "cut") == stop_at
    cut = run(tmp_path / "cut", STEPS)
    assert cut.system.states[0] is not None
    assert torch.equal(cut.system.weight, whole.system.weight)
    for name in (checkpoint.WEIGHTS, checkpoint.OPTIMISER, checkpoint.MEMORY):
        files = [(tmp_path / run / "state" / str(STEPS) / name).read_bytes() for run in ("whole", "cut")]
        assert files[0] == files[1], name


def test_each_micro_batch_has_the_memory_of_its_streams():
    system = run(None, STEPS).system
    assert [None if s is None else s.layers.shape[0] for s in system.states[:6]] == [None, None, None, 2, 2, 1]


def test_a_leg_of_another_length_begins_without_memory(tmp_path):
    def forgotten(trainer: Trainer) -> list[int]:
        return [call for call, state in enumerate(trainer.system.states) if state is None]

    whole = run(tmp_path / "whole", 5, 9)
    assert forgotten(whole) == [0, 1, 2, 15, 16, 17]
    run(tmp_path / "cut", 5, 9, stop_at=5)  # exactly at the border
    cut = run(tmp_path / "cut", 5, 9)
    assert forgotten(cut) == [0, 1, 2]
    assert torch.equal(cut.system.weight, whole.system.weight)


@pytest.mark.parametrize("stop_at", [2, 7])
def test_the_next_leg_reads_on_where_the_last_one_ended_whatever_is_logged(tmp_path, stop_at):
    each, seldom = run(tmp_path / "each", 5, 9), run(tmp_path / "seldom", 5, 9, log=7)
    assert torch.equal(each.system.weight, seldom.system.weight)
    run(tmp_path / "cut", 5, 9, stop_at=stop_at, log=7)
    assert torch.equal(run(tmp_path / "cut", 5, 9, log=7).system.weight, each.system.weight)


def test_damaged_memory_is_not_resumed_and_none_is_written_where_there_is_none(tmp_path):
    run(tmp_path / "run", STEPS, stop_at=3)
    path = tmp_path / "run" / "state" / "3" / checkpoint.MEMORY
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"memory\.safetensors is damaged"):
        run(tmp_path / "run", STEPS)
    system = Remembering()
    optimiser = AdamW(rate=0.01).build(system)
    checkpoint.save_state(tmp_path / "none", system, optimiser, {"step": 1}, publish=True, memory={0: None})
    assert not (tmp_path / "none" / "state" / "1" / checkpoint.MEMORY).exists()
    memory = {0: "of an earlier run"}
    checkpoint.load_state(tmp_path / "none", system, optimiser, memory)
    assert memory == {}


def streamed(*settings: str):
    return recipes.get("gpt2", size="tiny", settings=["schedule.0.length=16", "schedule.*.rows=8", *settings])


@pytest.mark.parametrize(("setting", "remembers"), [("arrange=ContinuingRows", True), ("arrange=Blocks", False)])
def test_validation_carries_the_memory_of_streams_from_batch_to_batch(shards, setting, remembers):
    recipe = streamed(setting)
    held = Mixture.open([shards["byte-bpe"]]).validation(recipe, 16, 0, "cpu")
    trainer = Trainer(Remembering(), recipe.optimise, Machine(), 0)
    validate = validator(trainer, held[:4] if remembers else [held[0]] * 3, recipe)
    for _ in range(2):
        with torch.no_grad():
            validate()
        states = [state is not None for state in trainer.system.states]
        assert states == ([False, True, True, True] if remembers else [False] * 3)
        trainer.system.states.clear()
    if remembers:
        assert len(held) >= 4
        assert len({batch.shape for batch in held}) == 1
        assert (torch.stack([batch.row for batch in held]).diff(dim=0) == 1).all()  # the next step of each stream


@pytest.mark.parametrize("setting", ["arrange=ContinuingRows", "arrange=ContinuingPairs(reuse=0.25)"])
def test_a_recipe_trains_on_streams_from_the_command_line(shards, tmp_path, setting):
    words = ["--set", setting, "--set", "schedule.0.length=16"]
    if "ContinuingPairs" in setting:
        words += ["--set", "layout=a [SEP] b [SEP]"]
    ran = command.pretrain("gpt2", shards["byte-bpe"], tmp_path / "run", *words)
    assert checkpoint.newest(tmp_path / "run") == 4
    assert "too little was held out" not in ran.err


def test_time_is_measured_with_fewer_streams_than_a_step_has(shards, tmp_path, monkeypatch):
    monkeypatch.setitem(MICRO_TOKENS, "cpu", 48)
    records = list(
        pretrain(streamed("arrange=ContinuingRows"), [shards["byte-bpe"]], tmp_path / "run", budget="3s", device="cpu")
    )
    assert any(record.get("done") for record in records)


def test_what_was_remembered_while_measuring_is_forgotten(shards):
    recipe = recipes.get("bert", size="tiny", settings=[*command.BERT, "arrange=ContinuingRows"])
    trainer = Trainer(Remembering(), recipe.optimise, Machine(), 0)
    mixture = Mixture.open([shards["wordpiece"]])
    assert micro_rows(recipe, mixture, trainer) == [8, 8]
    assert step_seconds(recipe, mixture, trainer, 8, limit=1.0) > 0
    assert any(state is not None for state in trainer.system.states)
    assert trainer.memory == {}


def test_a_data_set_that_no_stream_would_read_is_refused(shards, plain_shards, tmp_path):
    data = [shards["wordpiece"], f"{plain_shards['wordpiece']}:0.01"]
    recipe = recipes.get("bert", size="tiny", settings=[*command.BERT, "arrange=ContinuingRows"])
    with pytest.raises(ValueError, match="would not be read: its weight gives it none of the 8 rows of a step"):
        list(pretrain(recipe, data, tmp_path / "run", budget="2steps", device="cpu"))


def test_too_many_streams_are_refused_before_the_folder_is_made(shards, tmp_path):
    recipe = streamed("arrange=ContinuingRows", "schedule.*.rows=100000")
    with pytest.raises(ValueError, match="would fit, so lower schedule"):
        list(pretrain(recipe, [shards["byte-bpe"]], tmp_path / "run", budget="2steps", device="cpu"))
    assert not (tmp_path / "run").exists()


def saved_and_loaded(folder: Path, memory: dict) -> dict:
    system = Remembering()
    optimiser = AdamW(rate=0.01).build(system)
    checkpoint.save_state(folder, system, optimiser, {"step": 1}, publish=True, memory=memory)
    found: dict = {"of": "an earlier run"}
    checkpoint.load_state(folder, system, optimiser, found)
    return found


def lstm(rows: int) -> dict:
    """The cells (h, c) of two layers, in two directions, as a made-up network may keep them."""
    random = torch.Generator().manual_seed(rows)
    layers = [tuple(torch.randn(rows, 3, generator=random) for _ in "hc") for _ in range(2)]
    return {"forward": layers, "backward": tuple(layers[::-1]), "read": torch.tensor(5), "kind": "lstm", "none": None}


def test_any_tree_under_any_name_survives_saving(tmp_path):
    memory = {0: lstm(2), "0": lstm(3), "main/0|x": LayerMemory(torch.randn(2, 1, 4, 3), torch.ones(2, 4).bool())}
    found = saved_and_loaded(tmp_path, memory | {7: None})
    assert list(found) == list(memory)
    assert signature(found) == signature(memory)
    for one, other in zip(tensors(found), tensors(memory), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({0: Loss(torch.ones(1), torch.ones(1))}, None),  # any record of unmask
        ({0: {(1, 2): torch.ones(1)}}, "names in a memory must be words or whole numbers"),
        ({0: {"at": Path("x")}}, r"got PosixPath at \[0, 'at'\] of the memory"),
        ({0: LoopStage(1.0, 1, 1, legs)}, r"got function at \[0, 'open'\] of the memory"),
    ],
)
def test_what_a_checkpoint_cannot_hold_is_refused_by_its_path(tmp_path, memory, message):
    if message is None:
        assert saved_and_loaded(tmp_path, memory)[0].total == 1
        return
    with pytest.raises(UserError, match=message):
        saved_and_loaded(tmp_path, memory)


@dataclass(frozen=True)
class Foreign:
    cells: torch.Tensor


class Named(NamedTuple):
    cells: torch.Tensor


@pytest.mark.parametrize("kind", [Foreign, Named])
def test_a_class_from_outside_is_refused_with_what_to_use_instead(tmp_path, kind):
    with pytest.raises(
        UserError, match=rf"can hold dicts.* got .*{kind.__name__} at \[0, 'state'\].*: use one of these"
    ):
        saved_and_loaded(tmp_path, {0: {"state": kind(torch.ones(1))}})


def test_a_checkpoint_names_only_records_of_the_package():
    with pytest.raises(UserError, match="may name only records of unmask, got 'os.stat_result'"):
        saved_tree.rebuilt({"os.stat_result": []}, {})
    with pytest.raises(UserError, match=r"does not exist here: unmask\.backbone\.Gone"):
        saved_tree.rebuilt({"unmask.backbone.Gone": []}, {})


def test_a_memory_that_was_saved_without_an_outline_is_read(tmp_path):
    """As checkpoints were before memories were trees: layers first, under `MICRO-BATCH|FIELD`."""
    layers, real = torch.randn(2, 3, 4, 5), torch.ones(3, 4).bool()
    system = Remembering()
    optimiser = AdamW(rate=0.01).build(system)
    checkpoint.save_state(tmp_path, system, optimiser, {"step": 1}, publish=True)
    place = tmp_path / "state" / "1"
    save_file({"0|layers": layers, "0|real": real}, place / checkpoint.MEMORY)
    state = json.loads((place / checkpoint.STATE).read_text())
    state["sha256"][checkpoint.MEMORY] = hashlib.sha256((place / checkpoint.MEMORY).read_bytes()).hexdigest()
    (place / checkpoint.STATE).write_text(json.dumps(state))
    found: dict = {}
    checkpoint.load_state(tmp_path, system, optimiser, found)
    assert list(found) == [0]
    assert torch.equal(found[0].layers, layers.transpose(0, 1))
    assert torch.equal(found[0].real, real)


@pytest.mark.parametrize("optimise", ["AdamW", "Adagrad", "LAMB", "Momentum"])
def test_measuring_an_update_leaves_the_weights_and_the_state_of_the_optimiser(optimise):
    recipe = recipes.get("gpt2", size="tiny", settings=[f"optimise={optimise}"])
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    weights = [p.detach().clone() for p in trainer.system.parameters()]
    state = {p: {name: value.clone() for name, value in of.items()} for p, of in trainer.optimiser.state.items()}
    assert _update_seconds(trainer) > 0
    assert all(torch.equal(a, b) for a, b in zip(weights, trainer.system.parameters(), strict=True))
    assert dict(trainer.optimiser.state).keys() == state.keys()
    assert all(
        torch.equal(state[p][name], value) for p, of in trainer.optimiser.state.items() for name, value in of.items()
    )
