"""Muon: each matrix of a layer moves by an orthogonal matrix; AdamW trains everything else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.axes import Part
from unmask.errors import require
from unmask.train.average import Triggered
from unmask.train.optimise import Curve, check_numbers, factor, groups, share
from unmask.train.plan import Moment

STEPS = 5  # Newton-Schulz steps
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial that each step applies to the singular values
LIKE_ADAM = 0.2  # the usual root mean square of an update of AdamW, so that its learning rates work here too
SMALL = 1e-7  # the smallest norm that a matrix is divided by


@dataclass(frozen=True)
class Muon(Part):
    """Muon (Jordan et al. 2024) for the matrices inside the layers, AdamW for everything else.

    The scale of a move and the weight decay are those of Moonlight (Liu et al. 2025). Queries, keys and values are
    orthogonalised separately, except where a tensor holds them head by head (DeBERTa). `torch.optim.Muon` computes one
    matrix at a time; here, matrices of the same shape are computed together.
    """

    rate: float = 1e-3  # the highest learning rate, reached after the warmup
    other_rate: float | None = None  # the highest learning rate of AdamW; none: the same
    momentum: float = 0.95  # share of the mean gradient that is kept at each step
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW: decay rates of the mean and of the mean square
    epsilon: float = 1e-6  # of AdamW: added to the root of the mean square
    decay: float = 0.01  # weight decay; biases and norms have none
    clip: float | None = 1.0  # largest gradient norm; none for no clipping
    warmup: float = 0.01  # share of the steps in which the rate rises from 0
    curve: Curve = "linear"  # how the rate changes after the warmup
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered; none: no average
    average: float | Triggered | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        require(0 <= self.momentum < 1, "optimise.momentum must be in [0, 1), got {momentum}", momentum=self.momentum)
        require(
            self.other_rate is None or self.other_rate > 0,
            "optimise.other_rate must be over 0 or none, got {other_rate}: none is the same as optimise.rate",
            other_rate=self.other_rate,
        )

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        inside = layer_matrices(model)
        found = []
        for group in groups(model, self.decay):
            for matrices in (True, False):
                chosen = [p for p in group["params"] if (p in inside) == matrices]
                rate = self.rate if matrices or self.other_rate is None else self.other_rate
                found += [group | {"params": chosen, "matrices": matrices, "full": rate}] if chosen else []
        require(
            any(group["matrices"] for group in found),
            "optimise=Muon trains the matrices of layers, but this network has none that train: set optimise=AdamW",
        )
        return _Muon(
            found, inside, {"lr": self.rate, "momentum": self.momentum}, betas=self.betas, epsilon=self.epsilon
        )

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rates for a step; returns the rate of the matrices."""
        risen = factor(self.curve, self.warmup, moment)
        for group in optimiser.param_groups:
            group["lr"] = group["full"] * risen * share(group, moment)
        return self.rate * risen


def layer_matrices(model: nn.Module) -> dict[Tensor, int]:
    """The weights of the linear layers inside the layers of every network, and how many matrices each of them holds. A module
    declares those that hold several, and its own matrices, in `stacked`."""
    inside = [
        module
        for network in model.modules()
        for layer in getattr(network, "layer_modules", ())
        for outer in layer
        for module in outer.modules()
    ]
    several: dict[Tensor, int] = {
        m.get_parameter(name): n for m in inside for name, n in getattr(m, "stacked", {}).items()
    }
    return {m.weight: 1 for m in inside if isinstance(m, nn.Linear)} | several


class _Muon(torch.optim.Optimizer):
    """Muon for the groups with `matrices`; one AdamW for the others, which shares groups and state with it."""

    def __init__(
        self, groups: list[dict[str, Any]], inside: dict[Tensor, int], defaults: dict[str, Any], *,
        betas: tuple[float, float], epsilon: float,
    ) -> None:  # fmt: skip
        super().__init__(groups, defaults)
        self.inside = inside
        rest = [group for group in self.param_groups if not group["matrices"]]
        self.rest = torch.optim.AdamW(rest, lr=defaults["lr"], betas=betas, eps=epsilon, fused=True) if rest else None
        if self.rest is not None:
            self.rest.state = self.state  # one state: a checkpoint saves it whole

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            mine = [p for p in group["params"] if p.grad is not None]
            if mine and group["matrices"]:
                self._move(mine, group)
        if self.rest is not None:
            self.rest.step()

    def _move(self, mine: list[Tensor], group: dict[str, Any]) -> None:
        for p in mine:
            if not self.state[p]:
                self.state[p] = {"momentum": torch.zeros_like(p)}
        gradients: list[Any] = [p.grad for p in mine]
        means = [self.state[p]["momentum"] for p in mine]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        moves = torch._foreach_lerp(gradients, means, group["momentum"])  # Nesterov: one step ahead
        torch._foreach_mul_(mine, 1 - group["lr"] * group["weight_decay"])
        for chosen, several in _alike([self.inside[p] for p in mine], list(moves)):
            stacked = torch.cat(several)
            size = LIKE_ADAM * math.sqrt(max(stacked.shape[1:]))
            found = orthogonal(stacked).split([len(part) for part in several])
            shaped = [part.reshape(mine[i].shape).to(mine[i].dtype) for i, part in zip(chosen, found, strict=True)]
            torch._foreach_add_([mine[i] for i in chosen], shaped, alpha=-group["lr"] * size)


def _alike(counts: list[int], moves: list[Tensor]) -> Iterator[tuple[list[int], list[Tensor]]]:
    """Matrices of the same shape, each cut into the matrices that it holds, with their numbers in the list."""
    found: dict[Any, list[tuple[int, Tensor]]] = {}
    for number, (count, move) in enumerate(zip(counts, moves, strict=True)):
        parts = move.unflatten(0, (count, -1))  # matrices, rows, columns
        found.setdefault(parts.shape[1:], []).append((number, parts))
    for pairs in found.values():
        yield [number for number, _ in pairs], [parts for _, parts in pairs]


def orthogonal(matrices: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Each matrix (n rows columns) with all its singular values near 1, by Newton-Schulz steps.

    `dtype`: the precision of the steps; None: bfloat16 on a GPU, float32 elsewhere, where bfloat16 is slow."""
    x = matrices.to(dtype or (torch.bfloat16 if matrices.is_cuda else torch.float32))
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=SMALL)  # no singular value is over 1
    first, third, fifth = COEFFICIENTS
    for _ in range(STEPS):
        square = x @ x.mT
        change = torch.baddbmm(square, square, square, beta=third, alpha=fifth)
        x = torch.baddbmm(x, change, x, beta=first)
    return x.mT if tall else x
