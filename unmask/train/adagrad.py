"""Adagrad: gradient descent that divides the rate of each weight by the root of the sum of all its squared gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from unmask.axes import Part
from unmask.errors import require
from unmask.train.average import Triggered
from unmask.train.optimise import Curve, check_rate, groups, set_rates
from unmask.train.plan import Moment


@dataclass(frozen=True)
class Adagrad(Part):
    """Adagrad (Duchi et al. 2011), the optimiser of ELMo's released code; biases and norms have no weight decay."""

    rate: float = 0.2  # the highest learning rate, reached after the warmup
    start: float = 1.0  # what the sum of squared gradients starts from
    epsilon: float = 1e-10  # added to the root of the sum
    decay: float = 0.0  # weight decay
    clip: float | None = 10.0  # largest gradient norm; none for no clipping
    warmup: float = 0.0  # share of the steps in which the rate rises from 0
    curve: Curve = "constant"  # how the rate changes after the warmup
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered; none: no average
    average: float | Triggered | None = None

    def __post_init__(self) -> None:
        check_rate(self)
        require(self.start >= 0, "optimise.start must be 0 or more, got {start}", start=self.start)
        require(self.epsilon > 0, "optimise.epsilon must be over 0, got {epsilon}", epsilon=self.epsilon)

    def build(self, model: nn.Module) -> torch.optim.Adagrad:
        return torch.optim.Adagrad(
            groups(model, self.decay), lr=self.rate, initial_accumulator_value=self.start, eps=self.epsilon
        )

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        return set_rates(self, optimiser, moment)
