"""A dense layer, GELU and a norm before the output for each token: the layers that ModernBERT has before every output."""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.errors import require
from unmask.init_weights import InitWeights


class GeluNorm(nn.Module):
    """x -> norm(gelu(dense(x))), both without a bias."""

    def __init__(self, width: int, epsilon: float, initial: InitWeights) -> None:
        super().__init__()
        self.dense = initial.layer(nn.Linear(width, width, bias=False))
        self.norm = nn.LayerNorm(width, eps=epsilon, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.norm(F.gelu(self.dense(x))))


def layer_before(width: int, epsilon: float | None, initial: InitWeights) -> GeluNorm | None:
    """The layers of a head whose `norm` has this epsilon; none: there are no such layers."""
    return None if epsilon is None else GeluNorm(width, epsilon, initial)


def check_norm(whose: str, epsilon: float | None) -> None:
    require(
        epsilon is None or epsilon > 0, "the norm of {whose} must be none or over 0, got {epsilon}", whose=whose, epsilon=epsilon,
    )  # fmt: skip


def flops_before(width: int, epsilon: float | None) -> float:
    """Floating-point operations per token, in one forward pass."""
    return 0.0 if epsilon is None else 2.0 * width * width
