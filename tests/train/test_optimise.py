"""The optimiser and its curves against their formulas, and budgets against arithmetic."""

import math

import pytest
import torch
from torch import nn

from unmask.train import AdamW, Budget, Plan
from unmask.train.optimise import factor


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.matrix = nn.Parameter(torch.randn(3, 4, generator=generator))
        self.vector = nn.Parameter(torch.randn(4, generator=generator))
        self.other = nn.Parameter(torch.randn(2, 3, generator=generator))


def gradients(steps: int) -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [{n: torch.randn(p.shape, generator=generator) for n, p in Layer().named_parameters()} for _ in range(steps)]


def by_hand(spec: AdamW, steps: int) -> dict[str, torch.Tensor]:
    """Adam as in the paper, with decoupled decay of matrices; in float64."""
    values = {name: parameter.detach().double() for name, parameter in Layer().named_parameters()}
    mean = {name: torch.zeros_like(value) for name, value in values.items()}
    square = {name: torch.zeros_like(value) for name, value in values.items()}
    (b1, b2), epsilon = spec.betas, spec.epsilon
    for step, found in enumerate(gradients(steps), 1):
        rate = spec.rate * factor(spec.curve, spec.warmup, Plan(steps).moment(step))
        for name, value in values.items():
            gradient = found[name].double()
            mean[name] = b1 * mean[name] + (1 - b1) * gradient
            square[name] = b2 * square[name] + (1 - b2) * gradient**2
            m = mean[name] / (1 - b1**step) if spec.correct else mean[name]
            v = square[name] / (1 - b2**step) if spec.correct else square[name]
            decay = spec.decay if value.dim() > 1 else 0.0
            values[name] = value - rate * (m / (v.sqrt() + epsilon) + decay * value)
    return values


@pytest.mark.parametrize("correct", [True, False])
@pytest.mark.parametrize("curve", ["linear", "cosine", "constant"])
def test_it_is_adam_with_and_without_bias_correction(correct, curve):
    spec = AdamW(rate=0.01, epsilon=1e-3, decay=0.1, warmup=0.2, curve=curve, correct=correct)
    layer, steps = Layer(), 20
    optimiser = spec.build(layer)
    for step, found in enumerate(gradients(steps), 1):
        for name, parameter in layer.named_parameters():
            parameter.grad = found[name]
        spec.set(optimiser, Plan(steps).moment(step))
        optimiser.step()
    for name, expected in by_hand(spec, steps).items():
        assert torch.allclose(layer.get_parameter(name).double(), expected, atol=1e-5), name


def test_only_matrices_decay():
    layer = Layer()
    before = {name: parameter.detach().clone() for name, parameter in layer.named_parameters()}
    spec = AdamW(rate=0.1, decay=0.5, warmup=0.0, curve="constant")
    optimiser = spec.build(layer)
    for parameter in layer.parameters():
        parameter.grad = torch.zeros_like(parameter)
    spec.set(optimiser, Plan(10).moment(1))
    optimiser.step()
    assert torch.allclose(layer.matrix, before["matrix"] * (1 - 0.1 * 0.5))
    assert torch.equal(layer.vector, before["vector"])


@pytest.mark.parametrize("curve", ["linear", "cosine", "inverse_sqrt", "constant", "trapezoid"])
def test_the_warmup_rises_in_equal_steps_to_the_full_rate(curve):
    rates = [factor(curve, 0.1, Plan(100).moment(step)) for step in range(1, 11)]
    assert rates == pytest.approx([step / 10 for step in range(1, 11)])


@pytest.mark.parametrize(
    "curve,formula",
    [
        ("linear", lambda step: 1 - (step - 11) / 90),
        ("cosine", lambda step: 0.5 * (1 + math.cos(math.pi * (step - 11) / 90))),
        ("inverse_sqrt", lambda step: math.sqrt(10 / step)),
        ("constant", lambda step: 1.0),
        ("trapezoid", lambda step: 1.0 if step <= 91 else 1 - math.sqrt((step - 91) / 10)),
    ],
)
def test_after_the_warmup_the_rate_follows_its_formula_and_the_last_step_still_moves(curve, formula):
    rates = [factor(curve, 0.1, Plan(100).moment(step)) for step in range(11, 101)]
    assert rates == pytest.approx([formula(step) for step in range(11, 101)])
    assert rates[-1] > 0
    assert rates == sorted(rates, reverse=True)


def test_without_warmup_the_first_step_has_nearly_the_full_rate():
    assert factor("linear", 0.0, Plan(100).moment(1)) == pytest.approx(1.0, abs=0.02)
    assert factor("linear", 0.0, Plan(1).moment(1)) > 0


def test_a_long_warmup_shortens_the_fall_of_a_trapezoid():
    rates = [factor("trapezoid", 0.95, Plan(100).moment(step)) for step in range(1, 101)]
    assert rates[94] == rates[95] == 1.0
    assert rates[95:] == pytest.approx([1 - math.sqrt(n / 5) for n in range(5)])


@pytest.mark.parametrize(
    "text,kind,amount",
    [
        ("20m", "seconds", 1200),
        ("90s", "seconds", 90),
        ("2h", "seconds", 7200),
        ("1.5d", "seconds", 129_600),
        ("1e9tok", "tokens", 1e9),
        ("5000steps", "steps", 5000),
        ("1step", "steps", 1),
        (" 1E17 FLOP ", "flops", 1e17),
    ],
)
def test_a_budget_is_read_with_its_unit(text, kind, amount):
    assert Budget.parse(text) == Budget(kind, amount)


@pytest.mark.parametrize("text", ["", "20", "m", "-5m", "5 weeks", "soon", "1.2.3m", ".m", "1e9", "0steps"])
def test_a_budget_that_means_nothing_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="a budget (is a number with a unit, such as 20m, 90s|must be over 0)"):
        Budget.parse(text)


def test_a_budget_becomes_steps_where_that_needs_no_measuring():
    cost = {"step_tokens": 1000.0, "step_flops": 1e9}
    assert Budget.parse("1e6tok").steps(**cost) == 1000
    assert Budget.parse("7steps").steps(**cost) == 7
    assert Budget.parse("5e10flop").steps(**cost) == 50
    assert Budget.parse("1tok").steps(**cost) == 1
    assert Budget.parse("20m").steps(**cost) is None
