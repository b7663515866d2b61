"""What the ways of tuning share: their usual values, the layer groups of a network, and checks of the task."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from torch import nn

from unmask.axes import Curve, LowRankRows, Part
from unmask.errors import UserError, require
from unmask.recipe import Recipe

RATE_OF_ADDED = 5e-4  # of modules that are added to a network, at width 768


class Way(Part):
    """Base class of the ways of tuning, with the most usual answers to the protocol `Tune`."""

    @property
    def name(self) -> str:
        """Its name on the command line, for error messages."""
        return type(self).__name__.lower()

    @property
    def alone(self) -> bool:
        return False

    @property
    def plain(self) -> bool:
        return True

    @property
    def still(self) -> bool:
        return False

    @property
    def cached(self) -> Literal["last", "all"] | None:
        return None

    @property
    def turns(self) -> float:
        return 0.0

    def task(self, task: Any, recipe: Recipe) -> Any:
        return task

    def recipe(self, recipe: Recipe) -> Recipe:
        return recipe

    def put_in(self, system: Any) -> None:
        """Nothing is added."""

    def students(self, system: Any, recipe: Recipe) -> nn.Module | None:
        return None

    def merge(self, system: Any) -> None:
        """Nothing was added."""

    def factors(self, system: Any) -> dict[str, list[LowRankRows]]:
        return {}

    def rates(self, system: Any, head: str) -> dict[str, float | Curve]:
        return {}

    def notices(self, system: Any, head: str, epochs: int) -> list[str]:
        return []

    def without_layer_decay(self, task: Any) -> Any:
        """The task without the layer-wise decay of the recipe. A decay that the user gave is refused."""
        given = task.layer_decay
        require(
            given in (None, 1.0),
            "layer_decay={given} lowers the rates of the network's layers, and with --tune {name} it has no effect: leave "
            "layer_decay out, or leave --tune out",
            given=given,
            name=self.name,
        )
        return unless_given(task, layer_decay=1.0)

    def without_language(self, task: Any) -> Any:
        """The task without the loss of the next token, which only a network that trains can learn from."""
        given = task.language if task.predicts_next else None
        require(
            given is None or given == 0,
            "language={given} trains the network to predict the next token, but with --tune {name} the network does not "
            "train: leave language out, or choose another way such as --tune adapters",
            given=given,
            name=self.name,
        )
        return unless_given(task, language=0.0)

    def without_dropout(self, task: Any) -> Any:
        """The task, which must not need the dropout of a network that does not train."""
        require(
            not task.needs_dropout,
            "dropout or loss=dropout is set, but with --tune {name} the network computes without dropout, so it has no effect: "
            "leave it out, or choose another way such as --tune adapters",
            name=self.name,
        )
        return task

    def needs_head(self, task: Any) -> None:
        """Refuse a task without a new head."""
        if not task.head:
            raise UserError(
                "--tune {name} trains a new head and not the network, but --task {task} adds no head: choose another way, "
                "such as --tune adapters",
                name=self.name,
                task=type(task).__name__.lower(),
            )


class Added(Way):
    """Base class of the ways that add modules to the network and train them; the weights of the network stay."""

    @property
    def alone(self) -> bool:
        return True

    @property
    def plain(self) -> bool:
        return False

    def task(self, task: Any, recipe: Recipe) -> Any:
        return unless_given(self.without_layer_decay(task), rate=by_width(RATE_OF_ADDED, recipe))


def unless_given(task: Any, **values: Any) -> Any:
    """The task with these values where it has such a field and the user gave no value."""
    known = {field.name for field in dataclasses.fields(task)}
    mine = {name: value for name, value in values.items() if name in known and getattr(task, name) is None}
    return dataclasses.replace(task, **mine)


def by_width(rate: float, recipe: Recipe) -> float:
    """A rate for width 768, in inverse proportion to the width, as the rates of recipes are."""
    return rate * 768 / recipe.system.backbone.width


def of_head(system: Any, head: str) -> frozenset[str]:
    """The parameters of the new head."""
    mine = {id(parameter) for parameter in system.predict[head].parameters()} if head else set()
    return frozenset(name for name, parameter in system.named_parameters() if id(parameter) in mine)


def layer_groups(system: Any) -> list[frozenset[str]]:
    """The parameters in groups, from the top: the heads, the last layer, ..., the first layer, the embeddings.

    A parameter that several layers share belongs to the highest of them. Empty groups are left out."""
    layers = system.backbone.layer_modules
    depth = {id(parameter): 0 for parameter in system.backbone.parameters()}
    for number, modules in enumerate(layers, 1):
        depth |= {id(parameter): number for module in modules for parameter in module.parameters()}
    groups: list[set[str]] = [set() for _ in range(len(layers) + 2)]
    for name, parameter in system.named_parameters():
        groups[len(layers) + 1 - depth.get(id(parameter), len(layers) + 1)].add(name)
    return [frozenset(group) for group in groups if group]
