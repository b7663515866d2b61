"""The moving average of the weights against its formula; it is validated and published, and resumed to the bit."""

from __future__ import annotations

import contextlib
import json

import pytest
import torch
from torch import nn

from tests.train.test_clock import NARROW
from unmask import recipes
from unmask.errors import UserError
from unmask.pretraining import pretrain
from unmask.train import AdamW, Moment, Momentum, Plan, Snapshots, Triggered, checkpoint
from unmask.train.average import Average

SHORT = [*NARROW, "schedule.0.length=32", "schedule.*.rows=2", "shrink=false", "optimise.rate=0.01"]


def trained(shards, out, average: str, **options):
    recipe = recipes.get("roberta", size="tiny", settings=[*SHORT, f"optimise.average={average}"])
    records = list(pretrain(recipe, [shards["byte-bpe"]], out, budget="12steps", device="cpu", **options))
    return recipe, [r for r in records if "validation_loss" in r]


def test_it_is_the_formula_one_step_at_a_time():
    model = nn.Linear(2, 1, bias=False)
    average, expected = Average(model, 0.7), model.weight.detach().double().tolist()[0]
    for step in range(1, 40):
        with torch.no_grad():
            model.weight.add_(torch.tensor([[0.1 * step, -0.3]]))
        average.add(Moment(step, 0.0, 0.0))
        keep = min(0.7, (1 + step) / (10 + step))
        expected = [keep * e + (1 - keep) * w for e, w in zip(expected, model.weight[0].tolist(), strict=True)]
        assert average.values["weight"][0].tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("steps", [100, 7])
def test_snapshots_are_the_mean_of_the_weights_at_their_moments(steps):
    """By loops: at 80%, 85%, 90%, 95% and at the end; with few steps, several moments fall into one step."""
    model = nn.Linear(2, 1, bias=False)
    average, kept, plan = Snapshots(count=5, share=0.2).build(model), [], Plan(steps)
    wanted = [0.8, 0.85, 0.9, 0.95, 1.0]
    for step in range(1, steps + 1):
        with torch.no_grad():
            model.weight.add_(torch.tensor([[0.1 * step, -0.3]]))
        while wanted and step / steps >= wanted[0] - 1e-9:
            kept.append(model.weight.detach().clone())
            wanted.pop(0)
        average.add(plan.moment(step))
        expected = torch.stack(kept).mean(0) if kept else model.weight.detach()
        torch.testing.assert_close(average.values["weight"], expected)
    assert len(kept) == 5


def test_the_model_has_the_averaged_weights_only_inside():
    model = nn.Linear(2, 2)
    average = Average(model, 0.5)
    begun = {n: p.detach().clone() for n, p in model.named_parameters()}
    with torch.no_grad():
        model.weight.add_(1.0)
    now, place = model.weight.detach().clone(), model.weight.data_ptr()
    with contextlib.suppress(KeyError), average.in_place():
        assert torch.equal(model.weight, begun["weight"])
        raise KeyError
    assert torch.equal(model.weight, now)
    assert torch.equal(average.values["weight"], begun["weight"])
    assert model.weight.data_ptr() == place


def test_the_average_is_published_and_validated_and_training_goes_on_without_it(shards, tmp_path):
    recipe, checked = trained(shards, tmp_path / "averaged", "0.9")
    _, plain = trained(shards, tmp_path / "plain", "none")
    state = tmp_path / "averaged" / "state" / "12"
    raw, published = (
        checkpoint.read(state / checkpoint.WEIGHTS),
        checkpoint.read(tmp_path / "averaged" / checkpoint.WEIGHTS),
    )
    assert (state / checkpoint.WEIGHTS).read_bytes() == (tmp_path / "plain" / checkpoint.WEIGHTS).read_bytes()
    assert raw.keys() == published.keys()
    assert not torch.equal(raw["backbone.embed.token.weight"], published["backbone.embed.token.weight"])
    assert checked[-1]["loss"] == plain[-1]["loss"]
    # the published weights, trained no further, have the loss that validation found
    step = {"start": tmp_path / "averaged", "budget": "1steps", "device": "cpu"}
    again = recipe.replace(optimise=Momentum(rate=1e-30))
    records = list(pretrain(again, [shards["byte-bpe"]], tmp_path / "again", **step))
    (loss,) = [r["validation_loss"] for r in records if "validation_loss" in r]
    assert checked[-1]["validation_loss"] == pytest.approx(loss, rel=1e-6)
    assert plain[-1]["validation_loss"] != pytest.approx(loss, rel=1e-4)


def test_a_resumed_run_has_the_average_of_a_run_that_was_not_stopped(shards, tmp_path):
    trained(shards, tmp_path / "whole", "0.9")
    remaining = iter(range(4))
    trained(shards, tmp_path / "cut", "0.9", stop=lambda: next(remaining, None) is None)
    assert checkpoint.newest(tmp_path / "cut") == 5
    trained(shards, tmp_path / "cut", "0.9", resume=True)
    for name in (checkpoint.WEIGHTS, f"state/12/{checkpoint.WEIGHTS}", f"state/12/{checkpoint.AVERAGE}"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("average", [0.0, 1.0, 999.0])
def test_an_impossible_share_is_a_mistake(average):
    with pytest.raises(UserError, match=r"optimise.average must be in \(0, 1\) or none"):
        AdamW(average=average)


def test_the_mean_of_the_weights_begins_when_the_held_out_loss_stops_falling():
    losses, patience = [5.0, 4.0, 3.0, 3.5, 3.2, 3.1, 2.9, 3.01, 3.3, 1.0], 3
    model = torch.nn.Linear(2, 1)
    average, logs, begins = Triggered(patience=patience).build(model), [], None
    for number, loss in enumerate(losses):  # algorithm 1 of the paper, by hand
        average.judge(loss)
        before = logs[: max(0, len(logs) - patience)]
        if begins is None and before and loss > min(before):
            begins = number
        logs.append(loss)
        assert average.begun == (begins is not None)
    assert begins == 7  # 3.01 is over 3.0; the losses 3.5, 3.2 and 3.1 before were over recent losses only
    again = Triggered(patience=patience).build(model)
    again.resume(average.state())
    assert (again.losses, again.count) == (losses, average.count)


def test_triggered_steps_are_those_of_torch_and_the_mean_is_that_of_the_paper():
    torch.manual_seed(0)
    given = torch.randn(8, 4)
    ours, theirs = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    theirs.load_state_dict(ours.state_dict())
    spec = Momentum(rate=0.1, momentum=0.0, decay=0.0, average=Triggered(patience=1))
    optimiser, average = spec.build(ours), spec.average.build(ours)
    asgd = torch.optim.ASGD(theirs.parameters(), lr=0.1, t0=0, lambd=0.0)
    for loss in (1.0, 2.0, 3.0):
        average.judge(loss)
    path = [ours.weight.detach().clone()]
    for number in range(1, 7):
        for model, one in ((ours, optimiser), (theirs, asgd)):
            one.zero_grad()
            (model(given) - 1).square().mean().backward()
            one.step()
        average.add(Moment(number, 0.0, 0.0))
        path.append(ours.weight.detach().clone())
        assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert torch.allclose(average.values["weight"], torch.stack(path).mean(0), atol=1e-6)
    # torch leaves out the weights at the trigger and after the first step
    assert torch.allclose(asgd.state[theirs.weight]["ax"], torch.stack(path[2:]).mean(0), atol=1e-6)


def test_a_triggered_average_is_published_and_resumed(shards, tmp_path, monkeypatch):
    optimise = "optimise=Momentum(rate=0.1, momentum=0.0, warmup=0.0, average=Triggered(patience=1))"
    recipe = recipes.get("gpt2", size="tiny", settings=[*SHORT[:-1], optimise])
    losses = iter([1.0, 2.0, 3.0, 4.0] * 2)  # of the validations at steps 10, 20, 30 and 40 of two runs
    monkeypatch.setattr("unmask.pretraining.validator", lambda *_: lambda: {"loss": next(losses)})

    def train_to(folder, **more):
        return list(pretrain(recipe, [shards["byte-bpe"]], tmp_path / folder, budget="40steps", device="cpu", **more))

    remaining = iter(range(34))
    train_to("cut", stop=lambda: next(remaining, None) is None)
    assert checkpoint.newest(tmp_path / "cut") == 35
    train_to("cut", resume=True)
    train_to("whole")
    states = [json.loads((tmp_path / run / "state/40/state.json").read_text())["average"] for run in ("cut", "whole")]
    assert states == [{"losses": [1.0, 2.0, 3.0, 4.0], "count": 11}] * 2  # the weights after steps 30 to 40
    last = f"state/40/{checkpoint.WEIGHTS}"
    for name in (checkpoint.WEIGHTS, last):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    raw, published = (checkpoint.read(tmp_path / "whole" / name) for name in (last, checkpoint.WEIGHTS))
    assert not torch.equal(raw["backbone.embed.token.weight"], published["backbone.embed.token.weight"])
