"""Adamax: Adam with the largest recent gradient in the place of the root of the mean square."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unmask.axes import Part
from unmask.train.average import Triggered
from unmask.train.optimise import Curve, by_steps, check_numbers, groups, set_rates
from unmask.train.plan import Moment


@dataclass(frozen=True)
class Adamax(Part):
    """Adamax (Kingma and Ba 2015, section 7.1), the optimiser of MT-DNN; biases and norms have no weight decay."""

    rate: float = 5e-5  # the highest learning rate, reached after the warmup
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of the mean and of the largest gradient
    epsilon: float = 1e-6  # added to the largest gradient
    decay: float = 0.0  # weight decay
    clip: float | None = 1.0  # largest gradient norm; none for no clipping
    warmup: float = 0.1  # share of the steps in which the rate rises from 0
    curve: Curve = "linear"  # how the rate changes after the warmup
    correct: bool = True  # the bias correction of the mean; MT-DNN's released code leaves it out
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered; none: no average
    average: float | Triggered | None = None

    def __post_init__(self) -> None:
        check_numbers(self)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        given = {"lr": self.rate, "betas": self.betas, "eps": self.epsilon, "correct": self.correct}
        return _Adamax(groups(model, self.decay), given)

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        return set_rates(self, optimiser, moment)


class _Adamax(torch.optim.Optimizer):
    """Algorithm 2 of the paper with decoupled weight decay, computed on lists of tensors."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            for count, mine in by_steps(self, group, ("mean", "largest")):
                self._move(mine, group, count)

    def _move(self, mine: list[torch.Tensor], group: dict[str, Any], count: int) -> None:
        first, second = group["betas"]
        gradients: list[Any] = [p.grad for p in mine]
        means, largest = ([self.state[p][name] for p in mine] for name in ("mean", "largest"))
        torch._foreach_lerp_(means, gradients, 1 - first)
        torch._foreach_mul_(largest, second)
        torch._foreach_maximum_(largest, torch._foreach_abs(gradients))
        moves = torch._foreach_div(means, torch._foreach_add(largest, group["eps"]))
        if group["correct"]:
            torch._foreach_div_(moves, 1 - first**count)
        if group["weight_decay"]:
            torch._foreach_add_(moves, mine, alpha=group["weight_decay"])
        torch._foreach_add_(mine, moves, alpha=-group["lr"])
