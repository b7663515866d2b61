"""AdamW with the papers' exclusions, the curve that a rate follows, and what all optimisers share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import nn

from unmask.errors import require
from unmask.train.plan import Moment

Curve = Literal["linear", "cosine", "inverse_sqrt", "constant"]


class Optimise(Protocol):
    """What a recipe's `optimise` must be."""

    @property
    def clip(self) -> float | None: ...

    def build(self, model: nn.Module) -> torch.optim.Optimizer: ...

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""


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
        check_numbers(self)

    def build(self, model: nn.Module) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            groups(model, self.decay), lr=self.rate, betas=self.betas, eps=self.epsilon, fused=True
        )

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        rate = self.rate * factor(self.curve, self.warmup, moment)
        root, mean = 1.0, 1.0
        if not self.correct:
            # fold the correction's inverse into the rate and epsilon: exactly Adam without it
            mean, root = 1 - self.betas[0] ** moment.step, math.sqrt(1 - self.betas[1] ** moment.step)
        for group in optimiser.param_groups:
            group["lr"] = rate * mean / root
            group["eps"] = self.epsilon / root
            if group["weight_decay"]:
                group["weight_decay"] = self.decay * root / mean
        return rate


def factor(curve: Curve, warmup: float, moment: Moment) -> float:
    """The share of the highest rate at a step."""
    if moment.after <= warmup:
        return moment.after / warmup
    if curve == "constant":
        return 1.0
    if curve == "inverse_sqrt":
        return math.sqrt(warmup / moment.after)
    done = max(0.0, moment.before - warmup) / (1 - warmup)  # the last step still moves
    return 1 - done if curve == "linear" else 0.5 * (1 + math.cos(math.pi * done))


def groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """What decays, and what does not: biases, norms and other vectors."""
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() <= 1]
    both = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in both if group["params"]]


def check_numbers(optimise: Any) -> None:
    """Refuse what no optimiser of Adam's kind can work with."""
    check_rate(optimise)
    require(
        len(optimise.betas) == 2 and all(0 <= b < 1 for b in optimise.betas),
        f"optimise.betas must be two numbers in [0, 1), got {optimise.betas}",
    )
    require(optimise.epsilon > 0, f"optimise.epsilon must be over 0, got {optimise.epsilon}")


def check_rate(optimise: Any) -> None:
    """Refuse what none can work with, whatever it remembers."""
    require(optimise.rate > 0, f"optimise.rate must be over 0, got {optimise.rate}")
    require(0 <= optimise.warmup < 1, f"optimise.warmup must be in [0, 1), got {optimise.warmup}: a share of all steps")
    require(
        optimise.warmup > 0 or optimise.curve != "inverse_sqrt",
        "optimise.curve=inverse_sqrt falls from the end of the warmup on, and optimise.warmup is 0: set it, for example to 0.1",
    )
    require(optimise.decay >= 0, f"optimise.decay must be 0 or more, got {optimise.decay}")
    require(optimise.clip is None or optimise.clip > 0, f"optimise.clip must be over 0 or none, got {optimise.clip}")
