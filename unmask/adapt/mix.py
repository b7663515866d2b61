"""Mix: the head reads a learned mix of all layers of a network that stays as it is (Peters et al. 2018, ELMo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from unmask.adapt._way import Way, by_width, of_head, unless_given
from unmask.axes import gives_of
from unmask.batch import Hidden
from unmask.errors import UserError, require
from unmask.recipe import Recipe

RATE = 1e-3  # at width 768


@dataclass(frozen=True)
class Mix(Way):
    """Train the head, and the weights with which it reads all layers. The network stays as it is, without dropout."""

    cache: bool = False  # compute the vectors of all layers once, and keep them on disk

    @property
    def alone(self) -> bool:
        return True

    @property
    def plain(self) -> bool:
        return False

    @property
    def still(self) -> bool:
        return True

    @property
    def cached(self) -> Literal["last", "all"] | None:
        return "all" if self.cache else None

    def task(self, task: Any, recipe: Recipe) -> Any:
        self.needs_head(task)
        require(
            "equal layers" in gives_of(recipe.system),
            "--tune mix adds up the vectors of all layers, and the layers of {name} differ in width: choose another way, such "
            "as --tune head",
            name=recipe.name,
        )
        task = self.without_dropout(self.without_language(self.without_layer_decay(task)))
        return unless_given(task, rate=by_width(RATE, recipe))

    def put_in(self, system: Any) -> None:
        system.mix = LayerMix(system.backbone.spec.layers + 1)

    def merge(self, system: Any) -> None:
        raise UserError(
            "the head reads a mix of all layers, which cannot become a part of the weights of the network: use the run "
            "folder as it is, or tune with --tune lora or --tune full"
        )

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        return of_head(system, head) | {f"mix.{name}" for name, _ in system.mix.named_parameters()}


class LayerMix(nn.Module):
    """gamma times the sum of all layers, each with the softmax of its weight. It begins as the mean of the layers."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(layers))  # the embeddings first
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, hidden: Hidden) -> Hidden:
        """The vectors with the mix in the place of the last layer, because this is what heads read."""
        shares = self.gamma * self.weight.softmax(0)
        mixed = torch.stack([share * layer for share, layer in zip(shares, hidden.layers, strict=True)]).sum(0)
        return hidden.replace(layers=(*hidden.layers[:-1], mixed.to(hidden.last.dtype)), decoded=None)
