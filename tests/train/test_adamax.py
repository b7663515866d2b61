"""Adamax against its formula and against torch; its state goes through a checkpoint."""

from __future__ import annotations

import pytest
import torch

from tests.train.test_optimise import Layer, gradients
from unmask.train import Adamax, Plan, checkpoint
from unmask.train.optimise import factor

STEPS = 12


def run(spec: Adamax, layer: Layer, optimiser, first: int, last: int) -> None:
    for step, found in enumerate(gradients(STEPS), 1):
        if first < step <= last:
            for name, parameter in layer.named_parameters():
                parameter.grad = found[name].clone()
            spec.set(optimiser, Plan(STEPS).moment(step))
            optimiser.step()


@pytest.mark.parametrize("correct", [True, False])
def test_it_is_the_formula_of_the_paper_with_decoupled_decay(correct):
    spec = Adamax(rate=0.01, decay=0.1, warmup=0.2, epsilon=1e-8, correct=correct)
    layer = Layer()
    run(spec, layer, spec.build(layer), 0, STEPS)
    for name, start in Layer().named_parameters():
        value = start.detach().double()
        mean, largest = torch.zeros_like(value), torch.zeros_like(value)
        for step, found in enumerate(gradients(STEPS), 1):
            rate = spec.rate * factor(spec.curve, spec.warmup, Plan(STEPS).moment(step))
            mean = 0.9 * mean + 0.1 * found[name].double()
            largest = torch.maximum(0.999 * largest, found[name].double().abs())
            decay = spec.decay if value.dim() > 1 else 0.0
            value = value - rate * (mean / (1 - 0.9**step if correct else 1) / (largest + spec.epsilon) + decay * value)
        assert torch.allclose(layer.get_parameter(name).double(), value, atol=1e-6), name


def test_without_decay_it_is_the_one_of_torch():
    spec = Adamax(rate=0.01, warmup=0.0, curve="constant", epsilon=1e-8)
    mine, theirs = Layer(), Layer()
    run(spec, mine, spec.build(mine), 0, STEPS)
    other = torch.optim.Adamax(theirs.parameters(), lr=0.01, eps=1e-8)
    for found in gradients(STEPS):
        for name, parameter in theirs.named_parameters():
            parameter.grad = found[name]
        other.step()
    assert torch.allclose(mine.matrix, theirs.matrix, atol=1e-5)


def test_a_parameter_without_a_gradient_stays_and_later_has_its_own_number_of_steps():
    spec, layer = Adamax(rate=0.01, warmup=0.0, curve="constant"), Layer()
    optimiser, start = spec.build(layer), layer.vector.detach().clone()
    layer.matrix.grad = torch.ones_like(layer.matrix)
    optimiser.step()
    assert torch.equal(layer.vector, start)
    layer.vector.grad = torch.ones_like(layer.vector)
    optimiser.step()
    assert torch.allclose(start - layer.vector, torch.tensor(0.01), atol=1e-6)  # its first step, not its second


@pytest.mark.parametrize("stop", [5])
def test_it_continues_from_a_checkpoint_to_the_bit(stop, tmp_path):
    spec, whole, first, second = Adamax(rate=0.01), Layer(), Layer(), Layer()
    run(spec, whole, spec.build(whole), 0, STEPS)
    optimiser = spec.build(first)
    run(spec, first, optimiser, 0, stop)
    checkpoint.save_state(tmp_path, first, optimiser, {"step": stop}, publish=False)
    resumed = spec.build(second)
    checkpoint.load_state(tmp_path, second, resumed)
    run(spec, second, resumed, stop, STEPS)
    assert torch.equal(whole.matrix, second.matrix)
    assert torch.equal(whole.vector, second.vector)
