"""Adapters: small bottleneck layers in every layer of a network that else stays as it is (Houlsby et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.adapt._way import Added, of_head
from unmask.errors import UserError, require

SHARE = 12  # the usual size is the width divided by this: 64 at width 768
SEAMS = ("after_attention", "after_mlp")


@dataclass(frozen=True)
class Adapters(Added):
    """Train a bottleneck after the attention and after the feed-forward layer of each layer, the norms and the head."""

    size: int | None = None  # width of the bottleneck; none: a twelfth of the width of the network
    deviation: float = 0.01  # of the initial weights: near 0, so that an adapter begins as almost the identity

    def __post_init__(self) -> None:
        require(self.size is None or self.size >= 1, "tune.size must be none or 1 or more, got {size}", size=self.size)
        require(self.deviation > 0, "tune.deviation must be over 0, got {deviation}", deviation=self.deviation)

    def put_in(self, system: Any) -> None:
        width, layers = system.backbone.spec.width, _layers(system)
        require(
            bool(layers),
            "--tune adapters puts its layers after attention, and this network has no attention: choose another way, such as "
            "--tune ulmfit",
        )
        for module in layers:
            for seam in SEAMS:
                setattr(module, seam, Bottleneck(width, self.size or max(1, width // SHARE), self.deviation))

    def merge(self, system: Any) -> None:
        raise UserError(
            "adapters have an activation, so they cannot become a part of the weights of the network: use the run folder as "
            "it is, or tune with --tune lora or --tune full"
        )

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        mine = [getattr(module, seam) for module in _layers(system) for seam in SEAMS]
        norms = [module for module in system.backbone.modules() if isinstance(module, nn.LayerNorm)]
        chosen = {id(parameter) for module in (*mine, *norms) for parameter in module.parameters()}
        names = frozenset(name for name, parameter in system.named_parameters() if id(parameter) in chosen)
        return names | of_head(system, head)


class Bottleneck(nn.Module):
    """x + up(gelu(down(x))): two small linear layers, and the input is added to their output."""

    def __init__(self, width: int, size: int, deviation: float) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, size), nn.Linear(size, width)
        for linear in (self.down, self.up):
            nn.init.trunc_normal_(linear.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        more: Tensor = self.up(F.gelu(self.down(x)))
        return x + more.to(x.dtype)


def _layers(system: Any) -> list[Any]:
    """The modules with both seams."""
    found = [module for modules in system.backbone.layer_modules for module in modules]
    return [module for module in found if all(hasattr(module, seam) for seam in SEAMS)]
