"""A budget in time is spent: whatever the machine does, the run ends in time, and its learning rate has run its course."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pytest

from tests import command
from unmask import pretraining, recipes
from unmask.errors import UserError
from unmask.infer.model import open_run
from unmask.pretraining import measure as planning
from unmask.pretraining import pretrain
from unmask.pretraining import time_budget as clocks
from unmask.pretraining.short_budget import shrunk
from unmask.pretraining.time_budget import TimeBudget, read_plans
from unmask.train import Plan, Trainer, checkpoint
from unmask.train.log import read
from unmask.train.plan import leg_at

NARROW = ["system.backbone.width=16", "system.backbone.heads=1", "system.backbone.feedforward=32"]
SETTINGS = [*command.BERT, *NARROW, "optimise.warmup=0.1"]


class Machine:
    """A clock that goes on by what a step costs: a function of how many steps were made."""

    def __init__(self, cost, measured: float) -> None:
        self.time, self.steps, self.cost, self.measured = 0.0, 0, cost, measured

    def now(self) -> float:
        return self.time

    def step(self) -> None:
        self.steps += 1
        self.time += self.cost(self.steps, self.time)


@pytest.fixture
def on(monkeypatch):
    """Pretraining on such a machine: `measured` is what measuring finds a step to take."""
    update = Trainer.update

    def install(machine: Machine) -> Machine:
        def counted(trainer, moment):
            machine.step()
            return update(trainer, moment)

        monkeypatch.setattr(Trainer, "update", counted)
        monkeypatch.setattr(pretraining, "step_seconds", lambda *_: machine.measured)
        return machine

    return install


@pytest.fixture
def idle(monkeypatch):
    """Only the first step computes gradients, and the others take the same ones: enough for the clock, the plan and the rate."""
    gradients, first = Trainer.gradients, []

    def once(trainer, *words):
        first.extend([] if first else [gradients(trainer, *words)])
        return first[0]

    monkeypatch.setattr(Trainer, "gradients", once)


def run(machine, data, out, *, budget="60s", settings=SETTINGS, **options):
    recipe = recipes.get("bert", size="tiny", settings=settings)
    return list(pretrain(recipe, [data], out, budget=budget, device="cpu", now=machine.now, **options))


SPEEDS = {
    "as measured": (lambda step, time: 0.5, 0.5),
    "ten times faster than measured": (lambda step, time: 0.2, 2.0),
    "ten times slower than measured": (lambda step, time: 1.0, 0.1),
    "slow for the first third": (lambda step, time: 2.0 if time < 20 else 0.2, 2.0),
    "slow from the middle on": (lambda step, time: 0.2 if time < 30 else 1.0, 0.2),
}


@pytest.mark.parametrize("name", SPEEDS)
def test_a_run_ends_in_time_with_its_rate_run_down(on, idle, shards, tmp_path, name):
    machine = on(Machine(*SPEEDS[name]))
    run(machine, shards["wordpiece"], tmp_path / "run")
    assert machine.time == pytest.approx(60, rel=0.05)
    records = read(tmp_path / "run")
    assert records[-1]["done"]
    assert records[-1]["progress"] == 1.0
    rates = [record["rate"] for record in records]
    assert max(rates) > 0.9 * recipes.get("bert", size="tiny").optimise.rate
    assert rates[-1] < 0.1 * max(rates)
    assert [r["stage"] for r in records] == sorted(r["stage"] for r in records)
    assert records[-1]["stage"] == 1  # the last stage is reached
    progress = [record["progress"] for record in records]
    assert progress == sorted(progress)


def test_measuring_ten_times_wrong_costs_little_of_the_progress(on, idle, shards, tmp_path):
    machine = on(Machine(lambda step, time: 0.1, 1.0))
    run(machine, shards["wordpiece"], tmp_path / "run", stop=lambda: machine.time > 5)
    early = [record["progress"] for record in read(tmp_path / "run") if record["seconds"] < 3]
    assert early
    assert max(early) < 0.15  # 5% of the time


def test_a_run_that_was_killed_repeats_its_plans_and_ends_with_the_same_bytes(on, shards, tmp_path, monkeypatch):
    data = shards["wordpiece"]
    costs, budget = (lambda step, time: 2.0 if time < 10 else 0.2, 2.0), "30s"  # slow for the first third
    whole = on(Machine(*costs))
    run(whole, data, tmp_path / "whole", budget=budget)
    plans = read_plans(tmp_path / "whole")
    assert len(plans) > 2
    last = plans[-1].steps
    for killed_at in (3, 40, 77):
        # the same run, killed: its checkpoint is older than its last plan
        cut = tmp_path / f"cut-{killed_at}"
        steps = itertools.count(1)
        run(on(Machine(*costs)), data, cut, budget=budget, stop=lambda steps=steps, end=killed_at: next(steps) >= end)
        (cut / clocks.PLANS).write_text((tmp_path / "whole" / clocks.PLANS).read_text() + '{"steps": 9')
        with monkeypatch.context() as patch:
            patch.setattr(clocks, "NOTICED", 1e9)  # nothing is measured after the last plan
            run(on(Machine(*costs)), data, cut, budget=budget, resume=True)
        for name in (checkpoint.WEIGHTS, checkpoint.OPTIMISER):
            files = [(folder / "state" / str(last) / name).read_bytes() for folder in (tmp_path / "whole", cut)]
            assert files[0] == files[1], (killed_at, name)


def test_a_resumed_run_has_what_is_left_of_the_time(on, idle, shards, tmp_path):
    data, half = shards["wordpiece"], on(Machine(lambda step, time: 0.5, 0.5))
    run(half, data, tmp_path / "run", stop=lambda: half.time > 30)
    rest = on(Machine(lambda step, time: 0.1, 0.5))
    run(rest, data, tmp_path / "run", resume=True)
    assert half.time + rest.time == pytest.approx(60, rel=0.05)


def test_validations_and_checkpoints_take_no_more_than_a_twentieth_and_fit_the_budget(
    on, idle, shards, tmp_path, monkeypatch
):
    machine, saves = on(Machine(lambda step, time: 0.4, 0.4)), []

    def slow(*words, **options):
        saves.append(machine.time)
        machine.time += 1.5
        return save(*words, **options)

    save = checkpoint.save_state
    monkeypatch.setattr(checkpoint, "save_state", slow)
    run(machine, shards["wordpiece"], tmp_path / "run")
    assert machine.time == pytest.approx(60, rel=0.05)
    assert 2 <= len(saves) <= 4


def test_a_plan_is_written_before_it_takes_effect(tmp_path):
    clock = TimeBudget(10, [1.0], [1.0], tmp_path, began=0.0, step_seconds=1.0, event_seconds=0.0, now=lambda: 0.0)
    assert read_plans(tmp_path) == clock.plans == [Plan(9)]


def test_progress_never_falls_when_the_plan_changes():
    plan = Plan(100)
    later = plan.changed(40, 400)
    assert (plan.at(40), later.at(40), later.at(400)) == (0.4, 0.4, 1.0)
    assert later.moment(41).before == pytest.approx(0.4)
    assert later.at(41) - later.at(40) == pytest.approx(0.6 / 360)
    assert plan.changed(40, 12).steps == 41  # there is always a last step


def test_the_legs_of_a_plan_have_their_shares_of_its_steps():
    plan = Plan(10)
    assert [leg_at([0.8, 1.0], plan.moment(step)) for step in range(1, 11)] == [0] * 8 + [1] * 2
    assert leg_at([0.9, 1.0], Plan(1).moment(1)) == 0


def test_a_budget_shorter_than_a_step_is_refused_before_anything_is_written(on, shards, tmp_path):
    machine = on(Machine(lambda step, time: 90.0, 90.0))
    with pytest.raises(
        UserError,
        match=r"one step of bert tiny takes about 90 s here, and starting and measuring took 0 s of the budget of 60 s: give at "
        r"least --budget 1800s",
    ):
        run(machine, shards["wordpiece"], tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_measuring_takes_few_rows_where_a_pass_is_slow(shards, tmp_path, monkeypatch):
    recipe = recipes.get("bert", size="tiny", settings=[*SETTINGS, "schedule.*.rows=64"])
    asked, time = [], [0.0]

    def took(trainer, loader, rows):
        asked.append(rows)
        time[0] += rows * 1.0
        return rows * 1.0

    monkeypatch.setattr(planning, "_pass_seconds", took)
    monkeypatch.setattr(planning, "_update_seconds", lambda trainer: 0.5)
    # only the clock of this module: with another time for the whole process, event loops of other threads would sleep for hours
    monkeypatch.setattr(planning, "time", SimpleNamespace(monotonic=lambda: time[0]))
    mixture = pretraining.Mixture.open([shards["wordpiece"]])
    trainer = type("T", (), {"machine": type("M", (), {"device": "cpu"}), "memory": {}, "seed": 0})()
    assert planning.step_seconds(recipe, mixture, trainer, 64, limit=3.0) == pytest.approx(64.5)
    assert max(asked) == 1
    time[0] = 0.0
    asked.clear()
    assert planning.step_seconds(recipe, mixture, trainer, 64, limit=1000.0) == pytest.approx(64.5)
    assert max(asked) == 64


def test_what_can_fail_fails_before_measuring_and_leaves_no_folder(shards, tmp_path, monkeypatch):
    def measure(*_):
        raise AssertionError("measured")

    monkeypatch.setattr(pretraining, "step_seconds", measure)
    recipe, data = recipes.get("bert", size="tiny", settings=SETTINGS), [shards["wordpiece"]]
    (tmp_path / "file").write_text("")
    for out, options, message in (
        (tmp_path / "file" / "run", {}, "cannot be created"),
        (tmp_path / "run", {"tensorboard": True}, "needs the tensorboard package"),
        (tmp_path / "run", {"start": tmp_path / "none"}, "no run at"),
    ):
        if "tensorboard" in options:
            monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
        with pytest.raises(UserError, match=message):
            list(pretrain(recipe, data, out, budget="60s", device="cpu", **options))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


SHORT = ["schedule.0.length=512", "schedule.1.length=512", "schedule.*.rows=64", "shrink=true"]


@pytest.mark.parametrize("budget, settings, shrinks", [
    ("1e6tok", [*SHORT], True), ("1e6tok", [*SHORT, "shrink=false"], False), ("1e9tok", [*SHORT], False),
    ("40steps", [*SHORT], False),
])  # fmt: skip
def test_a_short_budget_takes_smaller_steps_says_so_and_writes_it_down(shards, tmp_path, budget, settings, shrinks):
    recipe = recipes.get("bert", size="tiny", settings=settings)
    records = []
    for record in pretrain(
        recipe, [shards["wordpiece"]], tmp_path / "run", budget=budget, device="cpu", stop=lambda: True
    ):
        records.append(record)
        if record.get("event") == "start":
            break
    notices = [record["text"] for record in records if record.get("event") == "notice"]
    saved = json.loads((tmp_path / "run" / "recipe.json").read_text())["schedule"]
    if shrinks:
        assert records[-1]["steps"] > 900
        assert saved[0]["length"] == 128
        assert saved[0]["rows"] * 128 == 1024
    else:
        assert saved[0]["length"] == 512
        assert saved[0]["rows"] == 64
    assert notices == []  # they follow the start


def test_the_notice_of_smaller_steps_names_the_setting_that_keeps_the_recipes_own(shards, tmp_path):
    recipe = recipes.get("bert", size="tiny", settings=SHORT)
    records = pretrain(
        recipe, [shards["wordpiece"]], tmp_path / "run", budget="1e5tok", device="cpu", stop=lambda: True
    )
    texts = " ".join(record.get("text", "") for record in records)
    assert "--set shrink=false keeps the steps of the recipe" in texts
    assert "8 rows of 128 tokens" in texts
    assert "too few for a network with random weights" in texts
    assert open_run(tmp_path / "run", device="cpu").recipe.schedule[0].rows == 8


def test_sizes_that_a_paper_has_never_shrink_and_a_users_own_step_stays():
    assert not recipes.get("bert", size="base").shrink
    assert not recipes.get("electra", size="small").shrink
    assert recipes.get("bert", size="tiny").shrink
    assert not recipes.get("bert", size="tiny", settings=["schedule.*.rows=4"]).shrink
    assert not recipes.get("bert", size="tiny", settings=["schedule.0.length=64"]).shrink
    assert recipes.get("bert", size="tiny", settings=["hide.budget=0.2"]).shrink


@pytest.mark.parametrize("content", ["", "{broken\n", '{"steps": 5.5, "since": 0, "progress": 0.0}\n', "5\n"])
def test_a_damaged_plan_is_not_resumed(on, shards, tmp_path, content):
    run(on(Machine(lambda step, time: 0.5, 0.5)), shards["wordpiece"], tmp_path / "run", stop=lambda: True)
    plans = tmp_path / "run" / clocks.PLANS
    plans.write_text(content)
    with pytest.raises(UserError, match="damaged"):
        run(on(Machine(lambda step, time: 0.5, 0.5)), shards["wordpiece"], tmp_path / "run", resume=True)
    plans.write_text(content + '{"steps": 9, "since": 0, "progress": 0.0}\n')
    if content:
        with pytest.raises(UserError, match="damaged in line 1"):
            run(on(Machine(lambda step, time: 0.5, 0.5)), shards["wordpiece"], tmp_path / "run", resume=True)


def test_smaller_steps_are_checked_against_the_data_as_the_recipes_own_are(shards, plain_shards, tmp_path):
    data = [shards["wordpiece"], f"{plain_shards['wordpiece']}:0.02"]
    recipe = recipes.get(
        "bert",
        size="tiny",
        settings=["arrange=ContinuingRows", "schedule.*.rows=64", "schedule.*.length=64", "shrink=true"],
    )
    with pytest.raises(UserError, match="would not be read"):
        list(pretrain(recipe, data, tmp_path / "run", budget="1e5tok", device="cpu"))
    assert not (tmp_path / "run").exists()


def test_a_rate_for_each_layer_can_be_measured(shards, tmp_path):
    recipe = recipes.get("bert", size="tiny", settings=[*SETTINGS, "optimise.layer_decay=0.9"])
    assert list(pretrain(recipe, [shards["wordpiece"]], tmp_path / "run", budget="3s", device="cpu"))


def test_a_smaller_step_keeps_a_row_for_every_track():
    recipe = recipes.get("unilm", size="tiny", settings=["tracks.left.share=0.05"])
    small = shrunk(recipe, steps=10, device="cpu")
    assert small != recipe
    for stage in small.schedule:
        assert all(track.share * stage.rows >= 1 - 1e-9 for track in recipe.all_tracks(stage).values())


def test_slow_checkpoints_take_little_of_the_time_and_validations_stay(on, idle, shards, tmp_path, monkeypatch):
    """With a budget in steps too: a step takes a second here, and a checkpoint five."""
    machine, saved, save = on(Machine(lambda step, time: 1.0, 1.0)), [], checkpoint.save_state

    def slow(folder, system, optimiser, at, **more):
        machine.time += 5
        saved.append(at["step"])
        save(folder, system, optimiser, at, **more)

    monkeypatch.setattr(checkpoint, "save_state", slow)
    run(machine, shards["wordpiece"], tmp_path / "run", budget="200steps")
    validated = [record["step"] for record in read(tmp_path / "run") if "validation_loss" in record]
    assert validated == list(range(10, 201, 10))
    assert saved == [10, 120, 200]


@pytest.mark.parametrize("device, tokens", [("cpu", 1_024), ("cuda", 8_192), ("cuda:0", 8_192)])
def test_the_smallest_step_depends_on_the_device(device, tokens):
    recipe = recipes.get("roberta", size="small")
    assert shrunk(recipe, steps=10, device=device).step_tokens == tokens
    assert shrunk(recipe, steps=2_500, device=device).step_tokens == recipe.step_tokens / 2
    assert shrunk(recipe, steps=5_000, device=device) is recipe


def test_runs_that_share_a_machine_expect_fewer_steps_and_make_them_smaller(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "step_seconds", lambda *_: 0.01)
    recipe, rows = recipes.get("bert", size="tiny", settings=SHORT), []
    for at_once in (1, 8):
        out = tmp_path / str(at_once)
        records = pretrain(recipe, [shards["wordpiece"]], out, budget="60s", device="cpu", at_once=at_once)
        assert any(record.get("event") == "start" for record in itertools.islice(records, 5))
        rows.append(json.loads((out / "recipe.json").read_text())["schedule"][0]["rows"])
    assert rows == [64, 38]  # 750 expected steps instead of 6,000: 4,915 tokens in rows of 128
