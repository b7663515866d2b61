"""LAMB: Adam whose step for each tensor is scaled by the norm of the tensor; made for large batches."""

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
class LAMB(Part):
    """LAMB (You et al. 2019), for ALBERT and BERT-wwm. Biases and norms have no weight decay and no scale.

    Queries, keys and values are one tensor here and share one scale; the code of the papers has three.
    """

    rate: float = 1.76e-3  # the highest learning rate, reached after the warmup
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of the mean and of the mean square
    epsilon: float = 1e-6  # added to the root of the mean square
    decay: float = 0.01  # weight decay
    clip: float | None = 1.0  # largest gradient norm; none for no clipping
    warmup: float = 0.025  # share of the steps in which the rate rises from 0
    curve: Curve = "linear"  # how the rate changes after the warmup
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered; none: no average
    average: float | Triggered | None = None

    def __post_init__(self) -> None:
        check_numbers(self)

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        scaled = [group | {"scaled": group["params"][0].dim() > 1} for group in groups(model, self.decay)]
        return _Lamb(scaled, {"lr": self.rate, "betas": self.betas, "eps": self.epsilon})

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        return set_rates(self, optimiser, moment)


class _Lamb(torch.optim.Optimizer):
    """Algorithm 2 of the paper with bias correction, computed on lists of tensors."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            for count, mine in by_steps(self, group, ("mean", "square")):
                self._move(mine, group, count)

    def _move(self, mine: list[torch.Tensor], group: dict[str, Any], count: int) -> None:
        first, second = group["betas"]
        gradients: list[Any] = [p.grad for p in mine]
        means, squares = ([self.state[p][name] for p in mine] for name in ("mean", "square"))
        torch._foreach_lerp_(means, gradients, 1 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - second)
        roots = torch._foreach_sqrt(torch._foreach_div(squares, 1 - second**count))
        torch._foreach_add_(roots, group["eps"])
        moves = torch._foreach_div(torch._foreach_div(means, 1 - first**count), roots)
        if group["weight_decay"]:
            torch._foreach_add_(moves, mine, alpha=group["weight_decay"])
        if group["scaled"]:
            torch._foreach_mul_(moves, _trust(mine, list(moves)))
        torch._foreach_add_(mine, moves, alpha=-group["lr"])


def _trust(weights: list[torch.Tensor], moves: list[torch.Tensor]) -> list[torch.Tensor]:
    """The norm of each tensor divided by the norm of its move; 1 if either is 0."""
    lengths = zip(torch._foreach_norm(weights), torch._foreach_norm(moves), strict=True)
    return [torch.where((w > 0) & (m > 0), w / m.clamp(min=1e-30), 1.0) for w, m in lengths]
