"""LAMB against Algorithm 2 of its paper, written out with loops in numpy; and its state through a checkpoint."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.train.test_optimise import Layer, gradients
from unmask.errors import UserError
from unmask.train import LAMB, Plan, checkpoint
from unmask.train.optimise import factor


def by_hand(spec: LAMB, steps: int, begins: dict[str, int] | None = None) -> dict[str, np.ndarray]:
    """One number at a time, in float64; vectors are plain Adam: no decay, no scale. `begins`: how many steps the training is
    ahead of a parameter."""
    values = {name: p.detach().double().numpy().ravel() for name, p in Layer().named_parameters()}
    shapes = {name: tuple(p.shape) for name, p in Layer().named_parameters()}
    mean = {name: [0.0] * len(v) for name, v in values.items()}
    square = {name: [0.0] * len(v) for name, v in values.items()}
    b1, b2 = spec.betas
    for step, found in enumerate(gradients(steps), 1):
        rate = spec.rate * factor(spec.curve, spec.warmup, Plan(steps).moment(step))
        for name, x in values.items():
            own = step - (begins or {}).get(name, 0)
            if own < 1:
                continue
            g, matrix = found[name].double().numpy().ravel(), len(shapes[name]) > 1
            move = []
            for i in range(len(x)):
                mean[name][i] = b1 * mean[name][i] + (1 - b1) * g[i]
                square[name][i] = b2 * square[name][i] + (1 - b2) * g[i] ** 2
                r = mean[name][i] / (1 - b1**own) / (math.sqrt(square[name][i] / (1 - b2**own)) + spec.epsilon)
                move.append(r + (spec.decay * x[i] if matrix else 0.0))
            weight, length = math.sqrt(sum(v**2 for v in x)), math.sqrt(sum(v**2 for v in move))
            trust = weight / length if matrix and weight > 0 and length > 0 else 1.0
            values[name] = np.array([v - rate * trust * m for v, m in zip(x, move, strict=True)])
    return {name: value.reshape(shapes[name]) for name, value in values.items()}


def run(spec: LAMB, layer: Layer, optimiser, first: int, last: int, steps: int) -> None:
    found = gradients(steps)
    for step in range(first, last + 1):
        for name, parameter in layer.named_parameters():
            parameter.grad = found[step - 1][name].clone()
        spec.set(optimiser, Plan(steps).moment(step))
        optimiser.step()


@pytest.mark.parametrize("decay", [0.1, 0.0])
@pytest.mark.parametrize("curve", ["linear", "constant"])
def test_it_is_the_algorithm_of_the_paper(decay, curve):
    spec = LAMB(rate=0.02, decay=decay, epsilon=1e-3, warmup=0.2, curve=curve)
    layer, steps = Layer(), 12
    run(spec, layer, spec.build(layer), 1, steps, steps)
    for name, expected in by_hand(spec, steps).items():
        assert np.allclose(layer.get_parameter(name).detach().double().numpy(), expected, atol=1e-5), name


@pytest.mark.parametrize("late", ["other", "vector"])
def test_a_parameter_that_begins_later_has_its_own_number_of_steps(late):
    """The head of a track that begins late: `other` shares its parameter group with `matrix`, which is ahead of it."""
    spec, steps, layer = LAMB(rate=0.02, decay=0.1, epsilon=1e-3, warmup=0.2), 12, Layer()
    optimiser = spec.build(layer)
    for step, found in enumerate(gradients(steps), 1):
        for name, parameter in layer.named_parameters():
            parameter.grad = None if name == late and step <= 5 else found[name].clone()
        spec.set(optimiser, Plan(steps).moment(step))
        optimiser.step()
    for name, expected in by_hand(spec, steps, {late: 5}).items():
        assert np.allclose(layer.get_parameter(name).detach().double().numpy(), expected, atol=1e-5), name


def test_a_matrix_moves_by_the_rate_times_its_own_length():
    """What the paper is about: the step of a tensor is as long as the tensor, however long the gradient."""
    for size in (1e-4, 1.0, 1e4):
        layer = Layer()
        before = layer.matrix.detach().clone()
        spec = LAMB(rate=0.1, decay=0.0, warmup=0.0, curve="constant", epsilon=1e-12)
        optimiser = spec.build(layer)
        for parameter, gradient in zip(layer.parameters(), gradients(1)[0].values(), strict=True):
            parameter.grad = gradient * size
        spec.set(optimiser, Plan(10).moment(1))
        optimiser.step()
        assert (layer.matrix - before).norm().item() == pytest.approx(0.1 * before.norm().item(), rel=1e-4)


@pytest.mark.parametrize("start, gradient", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_where_the_tensor_or_its_move_is_zero_nothing_is_scaled(start, gradient):
    layer = Layer()
    torch.nn.init.constant_(layer.matrix, start)
    for parameter in layer.parameters():
        parameter.grad = torch.full_like(parameter, gradient)
    spec = LAMB(rate=0.1, decay=0.0, warmup=0.0, curve="constant")
    optimiser = spec.build(layer)
    spec.set(optimiser, Plan(10).moment(1))
    optimiser.step()
    assert torch.allclose(layer.matrix, torch.full_like(layer.matrix, start - 0.1 * gradient), atol=1e-5)


def test_its_state_goes_through_a_checkpoint_to_the_bit(tmp_path):
    spec, steps = LAMB(rate=0.02, decay=0.1, warmup=0.2), 10
    whole = Layer()
    run(spec, whole, spec.build(whole), 1, steps, steps)
    half = Layer()
    optimiser = spec.build(half)
    run(spec, half, optimiser, 1, 4, steps)
    checkpoint.save_state(tmp_path, half, optimiser, {"step": 4}, publish=True)
    again = Layer()
    for parameter in again.parameters():
        torch.nn.init.zeros_(parameter)
    resumed = spec.build(again)
    assert checkpoint.load_state(tmp_path, again, resumed)["step"] == 4
    for parameter, other in zip(half.parameters(), again.parameters(), strict=True):
        assert torch.equal(parameter, other)
        for name in ("step", "mean", "square"):
            found = resumed.state[other][name]
            assert torch.equal(optimiser.state[parameter][name], found), name
            assert found.shape == optimiser.state[parameter][name].shape
    run(spec, again, resumed, 5, steps, steps)
    for parameter, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(parameter, other)


def test_parameters_without_a_gradient_stay_where_they_are():
    layer = Layer()
    before = layer.vector.detach().clone()
    spec = LAMB(warmup=0.0)
    optimiser = spec.build(layer)
    layer.matrix.grad = torch.ones_like(layer.matrix)
    spec.set(optimiser, Plan(2).moment(1))
    optimiser.step()
    assert torch.equal(layer.vector, before)
    assert layer.vector not in optimiser.state


@pytest.mark.parametrize("options", [{"rate": 0}, {"betas": (0.9, 1.0)}, {"decay": -1}, {"epsilon": 0}, {"warmup": 1}])
def test_impossible_numbers_are_a_mistake(options):
    with pytest.raises(UserError, match=f"optimise.{next(iter(options))}"):
        LAMB(**options)
