"""AdamW with the papers' exclusions, and the curve its rate follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from unmask.errors import require

Curve = Literal["linear", "cosine", "inverse_sqrt", "constant"]


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay; biases and norms do not decay."""

    rate: float = 1e-4  # the highest learning rate, reached after the warmup
    betas: tuple[float, float] = (0.9, 0.999)  # memory of the mean and of the square
    epsilon: float = 1e-6  # added to the root of the square
    decay: float = 0.01  # of the weights
    clip: float | None = 1.0  # longest gradient; none for no clipping
    warmup: float = 0.01  # share of the steps in which the rate rises from 0
    curve: Curve = "linear"  # what the rate does afterwards
    correct: bool = True  # Adam's bias correction; BERT's released code leaves it out

    def __post_init__(self) -> None:
        require(self.rate > 0, f"optimise.rate must be over 0, got {self.rate}")
        require(0 <= self.warmup < 1, f"optimise.warmup must be in [0, 1), got {self.warmup}: a share of all steps")
        require(
            len(self.betas) == 2 and all(0 <= b < 1 for b in self.betas),
            f"optimise.betas must be two numbers in [0, 1), got {self.betas}",
        )
        require(self.decay >= 0, f"optimise.decay must be 0 or more, got {self.decay}")
        require(self.epsilon > 0, f"optimise.epsilon must be over 0, got {self.epsilon}")
        require(self.clip is None or self.clip > 0, f"optimise.clip must be over 0 or none, got {self.clip}")

    def build(self, model: nn.Module) -> torch.optim.AdamW:
        trained = [p for p in model.parameters() if p.requires_grad]
        matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": self.decay}, {"params": vectors, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        return torch.optim.AdamW(groups, lr=self.rate, betas=self.betas, eps=self.epsilon, fused=True)

    def set(self, optimiser: torch.optim.Optimizer, step: int, steps: int) -> float:
        """Set the rate for step 1, 2 ... of all steps; returns it."""
        rate = self.rate * factor(self.curve, self.warmup, step, steps)
        root, mean = 1.0, 1.0
        if not self.correct:
            # fold the correction's inverse into the rate and epsilon: exactly Adam without it
            mean, root = 1 - self.betas[0] ** step, math.sqrt(1 - self.betas[1] ** step)
        for group in optimiser.param_groups:
            group["lr"] = rate * mean / root
            group["eps"] = self.epsilon / root
            if group["weight_decay"]:
                group["weight_decay"] = self.decay * root / mean
        return rate


def factor(curve: Curve, warmup: float, step: int, steps: int) -> float:
    """The share of the highest rate at a step counted from 1."""
    warm = max(1, round(warmup * steps)) if warmup else 0
    if step <= warm:
        return step / warm
    if curve == "constant":
        return 1.0
    if curve == "inverse_sqrt":
        return math.sqrt(max(warm, 1) / step)
    done = (step - warm) / max(1, steps - warm + 1)  # the last step still moves
    return 1 - done if curve == "linear" else 0.5 * (1 + math.cos(math.pi * done))
