"""Last: the last layers and the new head are trained; the layers below them stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.adapt._way import Way, layer_groups
from unmask.errors import require
from unmask.recipe import Recipe


@dataclass(frozen=True)
class Last(Way):
    """Train the last layers and the head."""

    layers: int = 2  # how many layers are trained

    def __post_init__(self) -> None:
        require(
            self.layers >= 1,
            "tune.layers must be 1 or more, got {layers}: --tune head trains no layer",
            layers=self.layers,
        )

    def task(self, task: Any, recipe: Recipe) -> Any:
        most = recipe.system.backbone.layers
        require(
            self.layers <= most,
            "tune.layers={layers} asks for more layers than the network has, {most}: lower it, or leave --tune out to train "
            "all weights",
            layers=self.layers,
            most=most,
        )
        return task

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        *layers, _ = layer_groups(system)  # the last group holds the embeddings
        return frozenset().union(*layers[: 1 + self.layers])
