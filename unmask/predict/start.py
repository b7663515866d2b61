"""The initial weights of heads."""

from __future__ import annotations

from torch import nn


def start(linear: nn.Linear, deviation: float) -> nn.Linear:
    """A layer with weights from a normal law cut at two deviations, and no bias yet."""
    nn.init.trunc_normal_(linear.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
