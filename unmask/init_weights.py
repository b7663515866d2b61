"""InitWeights weights: the distributions that fresh weights are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

Law = Literal["truncated", "normal"]


@dataclass(frozen=True)
class InitWeights:
    """How the layers of a network and of its heads start; biases start at zero."""

    law: Law = "truncated"  # a normal distribution cut at two deviations (BERT), or a whole one (GPT)
    deviation: float = 0.02  # of the normal distribution, before the cut

    def draw(self, weight: Tensor) -> Tensor:
        """Fill a tensor with fresh weights."""
        if self.law == "normal":
            return nn.init.normal_(weight, std=self.deviation)
        return nn.init.trunc_normal_(weight, std=self.deviation, a=-2 * self.deviation, b=2 * self.deviation)

    def layer(self, linear: nn.Linear) -> nn.Linear:
        """The layer with fresh weights."""
        self.draw(linear.weight)
        return _without_bias(linear)


def glorot(linear: nn.Linear) -> nn.Linear:
    """The layer with fresh weights, uniform within the root of 6 / (inputs + outputs) (Glorot and Bengio 2010)."""
    nn.init.xavier_uniform_(linear.weight)
    return _without_bias(linear)


def _without_bias(linear: nn.Linear) -> nn.Linear:
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
