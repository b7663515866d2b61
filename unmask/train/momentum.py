"""Momentum: gradient descent that keeps a share of its last update."""

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
class Momentum(Part):
    """Gradient descent with momentum (the character Transformer); biases and norms have no weight decay."""

    rate: float = 3e-3  # the highest learning rate, reached after the warmup
    momentum: float = 0.99  # share of the last update that is kept
    decay: float = 0.0  # weight decay
    clip: float | None = 1.0  # largest gradient norm; none for no clipping
    warmup: float = 0.0  # share of the steps in which the rate rises from 0
    curve: Curve = "constant"  # how the rate changes after the warmup
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered; none: no average
    average: float | Triggered | None = None

    def __post_init__(self) -> None:
        check_rate(self)
        require(0 <= self.momentum < 1, "optimise.momentum must be in [0, 1), got {momentum}", momentum=self.momentum)

    def build(self, model: nn.Module) -> torch.optim.SGD:
        return torch.optim.SGD(groups(model, self.decay), lr=self.rate, momentum=self.momentum)

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        return set_rates(self, optimiser, moment)
