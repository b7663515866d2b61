"""Rotary positions: queries and keys are rotated by their positions, so a score depends on the distance (Su et al. 2021).

A head of width d has d/2 planes. In plane i, the vector at position p is rotated by the angle p x theta^(-2i/d). Plane i
holds the numbers i and i + d/2 of the vector, as in the released weights of ModernBERT.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.axes import Need, Part
from unmask.errors import require

ROTATION = "rotation"  # the fact that an attention rotates queries and keys


@dataclass(frozen=True)
class Rotary(Part):
    """Queries and keys are rotated by an angle for each position (RoFormer, ModernBERT)."""

    theta: float = 10_000.0  # the base of the wavelengths; longer texts need a larger one
    local_theta: float | None = None  # of the layers that see only a window; none: theta

    def __post_init__(self) -> None:
        for name in ("theta", "local_theta"):
            value = getattr(self, name)
            require(
                value is None or value > 1,
                "backbone.positions.{name} must be over 1, got {value}",
                name=name,
                value=value,
            )

    @property
    def needs(self) -> tuple[Need, ...]:
        turned = Need(ROTATION, "it rotates queries and keys")
        local = Need("windows", "its local_theta is for layers with a window", unless="local_theta=none")
        return (turned,) if self.local_theta is None else (turned, local)

    @property
    def bounded(self) -> bool:
        return True  # angles that were never trained give poor scores

    @property
    def neighbours(self) -> bool:
        return False

    def embedding(self, length: int, width: int) -> None:
        return None

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        return []

    def rotation(self, position: Tensor, width: int, *, local: bool) -> tuple[Tensor, Tensor]:
        theta = self.theta if self.local_theta is None or not local else self.local_theta
        plane = torch.arange(0, width, 2, dtype=torch.float32, device=position.device)
        angle = position[..., None] / theta ** (plane / width)  # B T d/2
        return angle.cos(), angle.sin()


def rotated(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries, keys and values, B T 3 H d, with the queries and keys rotated. Angles are applied in float32."""
    cos, sin = cos[:, :, None, None], sin[:, :, None, None]
    one, other = qkv[:, :, :2].float().chunk(2, -1)
    turned = torch.cat((one * cos - other * sin, other * cos + one * sin), -1)
    return torch.cat((turned.to(qkv.dtype), qkv[:, :, 2:]), 2)
