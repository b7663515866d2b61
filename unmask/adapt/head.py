"""Head: only the new head is trained, on the vectors of a network that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from unmask.adapt._way import Way, by_width, of_head, unless_given
from unmask.recipe import Recipe

RATE = 1e-3  # at width 768


@dataclass(frozen=True)
class Head(Way):
    """Train only the new head. The network stays as it is, and computes without dropout."""

    cache: bool = False  # compute the vectors of the last layer once, and keep them on disk

    @property
    def alone(self) -> bool:
        return True

    @property
    def still(self) -> bool:
        return True

    @property
    def cached(self) -> Literal["last", "all"] | None:
        return "last" if self.cache else None

    def task(self, task: Any, recipe: Recipe) -> Any:
        self.needs_head(task)
        task = self.without_dropout(self.without_language(self.without_layer_decay(task)))
        return unless_given(task, rate=by_width(RATE, recipe))

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        return of_head(system, head)
