"""ULMFiT: lower layers learn more slowly, rates rise and fall in a slanted triangle, layers are unfrozen one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from unmask.adapt._way import Way, by_width, layer_groups, unless_given
from unmask.axes import Curve
from unmask.counted import counted
from unmask.curves import Slanted
from unmask.errors import require
from unmask.recipe import Recipe

RATE = 2e-4  # of the head, at width 768


@dataclass(frozen=True)
class Ulmfit(Way):
    """Train as Howard and Ruder (2018) do. Each of the three methods can be switched off."""

    decay: float = 2.6  # the rate of a layer group divided by that of the group below it; 1: all groups alike
    slanted: Slanted | None = Slanted()  # how rates rise and fall; none: as without --tune ulmfit
    gradual: bool = True  # the head trains first; with each epoch, one more layer group trains

    def __post_init__(self) -> None:
        require(
            self.decay >= 1, "tune.decay must be 1 or more, got {decay}: 1 gives all groups one rate", decay=self.decay
        )
        require(
            self.decay > 1 or self.slanted is not None or self.gradual,
            "tune.decay=1, tune.slanted=none and tune.gradual=false switch off all of ulmfit: leave --tune out",
        )

    def task(self, task: Any, recipe: Recipe) -> Any:
        if self.slanted is not None:
            given = task.warmup
            require(
                given is None,
                "warmup={given} has no effect, because the slanted triangle has its own rise: set tune.slanted.cut, or "
                "tune.slanted=none",
                given=given,
            )
            task = unless_given(task, warmup=0.0)
        if self.gradual:  # all groups are trained, the embeddings in the last epoch
            groups = recipe.system.backbone.layers + 2
            task = unless_given(task, epochs=max(recipe.adapt.epochs, float(groups)))
        task = self.without_layer_decay(task) if self.decay > 1 else task
        return unless_given(task, rate=by_width(RATE, recipe))

    def recipe(self, recipe: Recipe) -> Recipe:
        optimise: Any = recipe.optimise
        return recipe if self.slanted is None else recipe.replace(optimise=replace(optimise, curve="constant"))

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        groups = layer_groups(system)
        return frozenset().union(*groups[: epoch if self.gradual else None])

    def rates(self, system: Any, head: str) -> dict[str, float | Curve]:
        found: dict[str, float | Curve] = {}
        for number, names in enumerate(layer_groups(system)):
            share = self.decay**-number
            rate: float | Curve = share if self.slanted is None else self.slanted.times(share)
            found |= dict.fromkeys(names, rate)
        return found

    def notices(self, system: Any, head: str, epochs: int) -> list[str]:
        groups = len(layer_groups(system))
        if not self.gradual or epochs >= groups:
            return []
        return [
            f"{counted(epochs, 'epochs are too few')} to train all {groups} layer groups, of which one more trains in each epoch: the "
            f"lowest {groups - epochs} are not trained; set epochs={groups}, or tune.gradual=false"
        ]
