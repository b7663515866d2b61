"""Phases: which parameters train in which epochs. A phase lasts as long as the same parameters train."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unmask.errors import UserError
from unmask.recipe import Recipe
from unmask.system.tuned import kept_alone, only_train, without_students


@dataclass(frozen=True)
class Phase:
    """Some epochs in which the same parameters train."""

    until: float  # the share of all steps at its end
    names: frozenset[str] | None  # of the parameters that train; None: all parameters


def phases_of(recipe: Recipe, system: Any, epoch_steps: int, steps: int, *, alone: bool) -> list[Phase]:
    """The phases of a training, one without a way of tuning. It also prepares the system: its rates, what is saved, and
    the parameters that the optimiser must know. `alone`: only what is trained is saved."""
    tune, head = recipe.tune, "" if recipe.task is None else recipe.task.head
    if tune is None:
        return [Phase(1.0, None)]
    count = math.ceil(steps / epoch_steps)
    found: list[Phase] = []
    for epoch in range(1, count + 1):
        names = tune.trained(system, head, epoch)
        if not names:
            raise UserError(
                "--tune {tune} trains only the head in epoch {epoch}, and the head of --task {task} has no weights of its own: "
                "choose another way, such as --tune adapters",
                tune=type(tune).__name__.lower(),
                epoch=epoch,
                task=type(recipe.task).__name__.lower(),
            )
        if found and found[-1].names == names:
            found.pop()
        found.append(Phase(min(1.0, epoch * epoch_steps / steps), names))
    system.rates = tune.rates(system, head)
    system.saved = kept_alone(system, tune, head) if alone else without_students(system) if system.students else None
    only_train(system, found[-1].names or ())  # what trains at last, trains in all
    return found


def parameters(system: Any, last: Phase) -> dict[str, int]:
    """How many parameters train, and how many there are. `last`: the last phase, in which most of them train."""
    sizes = {name: parameter.numel() for name, parameter in system.named_parameters()}
    trained = sum(size for name, size in sizes.items() if last.names is None or name in last.names)
    return {"trained_parameters": trained, "all_parameters": sum(sizes.values())}


def about(recipe: Recipe, system: Any, epoch_steps: int, steps: int) -> list[str]:
    """What the way of tuning tells a user before the training."""
    head = "" if recipe.task is None else recipe.task.head
    return [] if recipe.tune is None else recipe.tune.notices(system, head, math.ceil(steps / epoch_steps))
