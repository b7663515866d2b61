"""Initial weights: the distributions that random initial weights are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

Law = Literal["truncated", "normal"]
_DRAWS = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)


class Undrawn(TorchFunctionMode):
    """A context in which networks are built without random weights: for weights that are loaded next. Drawing the weights
    of a large network takes longer than loading them."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if func in _DRAWS:
            tensor: Tensor = args[0] if args else given["tensor"]
            return tensor.detach().zero_()
        return func(*args, **given)


@dataclass(frozen=True)
class InitWeights:
    """How the layers of a network and of its heads are initialised. Biases start at zero."""

    law: Law = "truncated"  # a normal distribution, truncated at two standard deviations (BERT) or not (GPT)
    deviation: float = 0.02  # standard deviation of the normal distribution, before the truncation

    def draw(self, weight: Tensor) -> Tensor:
        """Fill a tensor with random initial weights."""
        if self.law == "normal":
            return nn.init.normal_(weight, std=self.deviation)
        return nn.init.trunc_normal_(weight, std=self.deviation, a=-2 * self.deviation, b=2 * self.deviation)

    def layer(self, linear: nn.Linear) -> nn.Linear:
        """Initialise a layer; returns it."""
        self.draw(linear.weight)
        return _without_bias(linear)


def glorot(linear: nn.Linear) -> nn.Linear:
    """Initialise a layer with uniform weights in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010); returns it."""
    nn.init.xavier_uniform_(linear.weight)
    return _without_bias(linear)


def _without_bias(linear: nn.Linear) -> nn.Linear:
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear
