"""A network that gives all tokens one vector is told to the user."""

import math
import re

import pytest
import torch

from unmask import recipes
from unmask.predict.replaced import ReplacedModule
from unmask.pretraining import pretrain
from unmask.pretraining.collapse import collapses
from unmask.settings import override
from unmask.train.log import read


def notices(shards, out):
    lengths = [f"schedule.{i}.length=32" for i in range(2)]
    recipe = recipes.get("bert", size="tiny", settings=[*lengths, "schedule.*.rows=8"])
    records = list(pretrain(recipe, [shards["wordpiece"]], out, budget="4steps", device="cpu"))
    spread = [r["validation_spread"] for r in records if "validation_spread" in r][-1]
    return spread, [r["text"] for r in records if r.get("event") == "notice" and "collapsed" in r["text"]]


def test_a_healthy_network_spreads_its_vectors_and_nothing_is_said(shards, tmp_path):
    spread, said = notices(shards, tmp_path / "run")
    assert spread > 0.3
    assert not said


def test_a_collapsed_network_is_told_with_what_to_do(shards, tmp_path, monkeypatch):
    from unmask.backbone.transformer import TransformerModule

    forward = TransformerModule.forward

    def flat(self, batch, state=None):
        hidden, state = forward(self, batch, state)
        return hidden.replace(layers=tuple(torch.ones_like(x) + 1e-3 * x for x in hidden.layers)), state

    monkeypatch.setattr(TransformerModule, "forward", flat)
    spread, said = notices(shards, tmp_path / "run")
    assert spread < 0.1
    assert len(said) == 1
    assert "lower optimise.rate, or raise optimise.warmup" in said[0]


SETTINGS = ["system.backbone.width=16", "system.backbone.heads=2", "system.backbone.feedforward=32",
            "system.generator.width=8", "system.generator.heads=1", "system.generator.feedforward=16",
            "schedule.0.length=32", "schedule.*.rows=8"]  # fmt: skip


def electra(shards, out, *settings):
    recipe = recipes.get("electra", size="tiny", settings=[*SETTINGS, *settings])
    return recipe, list(pretrain(recipe, [shards["wordpiece"]], out, budget="50steps", device="cpu"))


def told(records):
    return [r["text"] for r in records if r.get("event") == "notice" and "collapsed" in r["text"]]


@pytest.fixture
def constant(monkeypatch):
    """A discriminator that gives the same answer for every token."""
    monkeypatch.setattr(ReplacedModule, "_scores", lambda self, x: x[..., 0] * 0 - 1.8)


def test_a_discriminator_that_answers_with_the_base_rate_is_told_once_and_while_it_happens(shards, tmp_path, constant):
    recipe, records = electra(shards, tmp_path / "run")
    checked = [r for r in records if "validation_base_replaced" in r]
    assert [r["step"] for r in checked] == [10, 20, 30, 40, 50]
    assert len(told(records)) == 1
    at = next(i for i, r in enumerate(records) if "collapsed" in r.get("text", ""))
    assert records[at - 1]["step"] == 10  # a fifth of the training: it has had time to begin
    assert "nearly the same answer for 'replaced' after 20% of the training" in told(records)[0]
    assert [line.get("notices", []) for line in read(tmp_path / "run") if line["step"] == 10] == [told(records)]
    advice = re.findall(r"set (system\.[\w.]+=(?:\w+\(.*?\)|[\d.]+))", told(records)[0])
    assert len(advice) == 2
    for setting in advice:  # the advice can be followed
        assert override(recipe, [setting]).system != recipe.system
    last = next(r for r in records if r.get("done"))
    share = 1 / (1 + math.exp(1.8))  # what every token is answered with
    base, loss = last["validation_base_replaced"], last["validation_loss_replaced"]
    # loss = -y log(share) - (1 - y) log(1 - share): solve for the share y of replaced tokens
    y = (loss + math.log(1 - share)) / (math.log(1 - share) - math.log(share))
    assert base == pytest.approx(-y * math.log(y) - (1 - y) * math.log(1 - y), abs=1e-4)
    assert base <= loss


@pytest.mark.parametrize(
    "setting, progress, said",
    [
        ("system.discriminator_rate=1.0", 0.19, False),
        ("system.discriminator_rate=1.0", 0.2, True),
        ("system.discriminator_rate=After(share=0.5)", 0.69, False),
        ("system.discriminator_rate=After(share=0.5)", 0.7, True),
        ("schedule.0.weights.replaced=After(share=0.5)", 0.69, False),
        ("schedule.0.weights.replaced=0.0", 1.0, False),
    ],
)
def test_a_discriminator_is_told_only_after_it_had_time_to_learn(setting, progress, said):
    recipe = recipes.get("electra", size="tiny", settings=[setting])
    record = {"progress": progress, "validation_spread": 0.9, "validation_loss_replaced": 0.399}
    assert bool(collapses(record | {"validation_base_replaced": 0.4}, recipe)) == said
    assert not collapses(
        record | {"validation_base_replaced": 0.41}, recipe
    )  # more than 1% better than a constant answer
    assert "spread" in collapses({"progress": 0.01, "validation_spread": 0.05}, recipe)


def test_a_discriminator_that_learns_is_not_told(shards, tmp_path, monkeypatch):
    def knowing(self, hidden, batch):
        return (batch.ids != batch.original) * 8.0 - 4.0

    monkeypatch.setattr(ReplacedModule, "decode", knowing)
    _, records = electra(shards, tmp_path / "run")
    assert not told(records)
