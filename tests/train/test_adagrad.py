"""Adagrad against torch's own, and its state through a checkpoint."""

from __future__ import annotations

import pytest
import torch

from tests.train.test_adamax import STEPS, run
from tests.train.test_optimise import Layer, gradients
from unmask import recipes
from unmask.errors import UserError
from unmask.train import Adagrad, Plan, checkpoint
from unmask.train.optimise import factor


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_it_is_the_one_of_torch(start):
    spec = Adagrad(rate=0.2, start=start)
    mine, theirs = Layer(), Layer()
    run(spec, mine, spec.build(mine), 0, STEPS)
    other = torch.optim.Adagrad(theirs.parameters(), lr=0.2, initial_accumulator_value=start)
    for found in gradients(STEPS):
        for name, parameter in theirs.named_parameters():
            parameter.grad = found[name]
        other.step()
    assert torch.equal(mine.matrix, theirs.matrix)
    assert torch.equal(mine.vector, theirs.vector)


def test_it_is_the_formula_of_the_paper_with_a_curve_and_decay_of_matrices():
    spec, layer = Adagrad(rate=0.1, start=0.5, decay=0.1, warmup=0.2, curve="linear"), Layer()
    run(spec, layer, spec.build(layer), 0, STEPS)
    for name, begin in Layer().named_parameters():
        value, total = begin.detach().double(), 0.5
        for step, found in enumerate(gradients(STEPS), 1):
            rate = spec.rate * factor(spec.curve, spec.warmup, Plan(STEPS).moment(step))
            gradient = found[name].double() + (spec.decay * value if value.dim() > 1 else 0.0)
            total = total + gradient**2
            value = value - rate * gradient / (total**0.5 + spec.epsilon)
        assert torch.allclose(layer.get_parameter(name).double(), value, atol=1e-6), name


def test_it_continues_from_a_checkpoint_to_the_bit(tmp_path):
    spec, whole, first, second = Adagrad(), Layer(), Layer(), Layer()
    run(spec, whole, spec.build(whole), 0, STEPS)
    optimiser = spec.build(first)
    run(spec, first, optimiser, 0, 5)
    checkpoint.save_state(tmp_path, first, optimiser, {"step": 5}, publish=False)
    resumed = spec.build(second)
    checkpoint.load_state(tmp_path, second, resumed)
    run(spec, second, resumed, 5, STEPS)
    assert torch.equal(whole.matrix, second.matrix)
    assert torch.equal(whole.vector, second.vector)


@pytest.mark.parametrize("options", [{"rate": 0}, {"start": -1}, {"epsilon": 0}, {"warmup": 1}, {"decay": -1}])
def test_impossible_numbers_are_a_mistake(options):
    with pytest.raises(UserError, match=f"optimise.{next(iter(options))}"):
        Adagrad(**options)


def test_elmo_has_the_optimiser_of_its_released_code():
    """Which multiplies the gradients by 20, clips their norm at 10, and has a rate of 0.2 and a sum that starts at 1."""
    spec, mine, theirs = recipes.get("elmo", variant="code").optimise, Layer(), Layer()
    optimiser = spec.build(mine)
    released = torch.optim.Adagrad(theirs.parameters(), lr=0.2, initial_accumulator_value=1.0)
    for step, found in enumerate(gradients(STEPS), 1):
        for name in found:
            mine.get_parameter(name).grad, theirs.get_parameter(name).grad = (
                found[name] / step**3,
                20 * found[name] / step**3,
            )
        torch.nn.utils.clip_grad_norm_(mine.parameters(), spec.clip)
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 10.0)
        spec.set(optimiser, Plan(STEPS).moment(step))
        optimiser.step()
        released.step()
    assert torch.allclose(mine.matrix, theirs.matrix, atol=1e-5)
    assert torch.allclose(mine.vector, theirs.vector, atol=1e-5)
