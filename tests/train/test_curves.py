"""Curves against their formulas; the loop takes their value at every step; momentum against its formula."""

from __future__ import annotations

import math

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.curves import Exponential, InTurn, Linear, Until, at, of
from unmask.errors import UserError
from unmask.train import (
    Fixed,
    Intervals,
    LoopStage,
    Machine,
    Momentum,
    Plan,
    Trainer,
    train,
)


@pytest.mark.parametrize("done", [0.0, 0.1, 0.25, 0.5, 0.999, 1.0])
def test_a_curve_has_the_value_of_its_formula(done):
    assert Until(0.25, 3.0).at(done) == (3.0 if done < 0.25 else 0.0)
    assert Linear(2.0, -1.0).at(done) == pytest.approx(2.0 * (1 - done) + -1.0 * done)
    assert Exponential(0.2, 0.1).at(done) == pytest.approx(0.2 * math.exp(-math.log(2) * done))
    for layer in range(1, 6):
        assert InTurn(0.5, 2.0).of(layer, 6).at(done) == (2.0 if done < layer / 12 else 0.0)
    assert at(0.7, done) == 0.7
    assert of(Linear(), 2, 6) == Linear()


def test_a_decay_ends_above_nothing():
    with pytest.raises(UserError, match="must be over 0, got 1.0 and 0.0: use Linear"):
        Exponential(1.0, 0.0)


class Source:
    def batch(self, rows):
        return random_batch(rows=rows, length=16)

    def state(self):
        return {}

    after_stage = state


def test_the_loop_weighs_each_loss_by_its_curve_at_every_step(monkeypatch):
    recipe = recipes.get(
        "char-transformer", size="tiny", settings=["system.backbone.width=16", "system.backbone.layers=2"]
    )
    trainer = Trainer(recipe.system.build(recipe, vocabulary(), 0), recipe.optimise, Machine(), 0)
    asked = []
    gradients = trainer.gradients
    monkeypatch.setattr(
        trainer, "gradients", lambda b, weights, *more: asked.append(weights) or gradients(b, weights, *more)
    )
    curves = {"second": Linear(1.0, 0.0), "layer_1": Until(0.5), "layer_second_1": 0.25}
    legs = [LoopStage(0.5, 2, 2, lambda _: Source(), curves), LoopStage(1.0, 2, 2, lambda _: Source(), curves)]
    *_, last = train(trainer, legs, Fixed(4), folder=None, pace=Intervals(log=1))
    assert [w["second"] for w in asked] == [1.0, 0.75, 0.5, 0.25]
    assert [w["layer_1"] for w in asked] == [1.0, 1.0, 0.0, 0.0]
    assert [w["layer_second_1"] for w in asked] == [0.25] * 4
    weighed = last["loss_tokens"] + 0.25 * last["loss_second"] + 0.25 * last["loss_layer_second_1"]
    assert last["loss"] == pytest.approx(weighed)  # what the last step minimised


def test_momentum_moves_as_its_formula_says():
    model = torch.nn.Linear(3, 2)
    optimise = Momentum(rate=0.1, momentum=0.9, decay=0.01, warmup=0.5)
    optimiser = optimise.build(model)
    weight, velocity = model.weight.detach().clone(), torch.zeros(2, 3)
    for step in range(1, 5):
        gradient = torch.full((2, 3), float(step))
        model.weight.grad, model.bias.grad = gradient.clone(), torch.zeros(2)
        rate = optimise.set(optimiser, Plan(4).moment(step))
        assert rate == pytest.approx(0.1 * min(1.0, step / 2))
        optimiser.step()
        velocity = 0.9 * velocity + gradient + 0.01 * weight
        weight = weight - rate * velocity
        assert torch.allclose(model.weight, weight, atol=1e-6)
    with pytest.raises(UserError, match=r"optimise.momentum must be in \[0, 1\), got 1"):
        Momentum(momentum=1.0)
