"""What there is: recipes, their values and differences, tasks; and whether a recipe keeps the contracts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from unmask import recipes, task_names, tune_names
from unmask.api.choose_recipe import named
from unmask.recipe import Recipe
from unmask.recipe_json import plain
from unmask.settings import flat

if TYPE_CHECKING:
    from unmask.contracts import Outcome


@dataclass(frozen=True)
class Description:
    """A recipe, and what it costs."""

    recipe: dict[str, Any]  # as recipe.json holds it
    values: dict[str, Any]  # every value under the name that a setting gives it
    parameters: int  # in training
    kept: int  # parameters of the network that is kept for use, without its heads
    flops_per_token: float  # in training


class Difference(NamedTuple):
    """One value in which two recipes differ; None where a recipe has no such value."""

    name: str
    first: Any
    second: Any


def list_recipes() -> list[recipes.Entry]:
    """The family, oldest first."""
    return recipes.entries()


def describe(
    recipe: str | Recipe, *, size: str | None = None, variant: str = "paper", settings: Sequence[str] = ()
) -> Description:
    """Every value of a recipe, its parameters, and the operations per token. `recipe`: a name, a .py file or a Recipe."""
    from unmask.system import cost

    chosen = named(recipe, size=size, variant=variant, settings=settings)
    price = cost(chosen, chosen.tokenizer.vocab)
    trained, kept = int(price["parameters"]), int(price["kept"])
    return Description(plain(chosen), flat(chosen), trained, kept, price["flops_per_token"])


def differences(first: str | Recipe, second: str | Recipe, *, size: str | None = None) -> list[Difference]:
    """The values in which two recipes differ, apart from their names."""
    a, b = (flat(named(recipe, size=None if isinstance(recipe, Recipe) else size)) for recipe in (first, second))
    inner = {name.rpartition(".")[0] for name in (*a, *b)}  # an empty dict differs by what the other one has inside
    names = [
        name for name in dict.fromkeys([*a, *b])
        if name != "name" and a.get(name) != b.get(name) and not (name in inner and {} in (a.get(name), b.get(name)))
    ]  # fmt: skip
    return [Difference(name, a.get(name), b.get(name)) for name in names]


def list_tasks() -> list[str]:
    """The kinds of task that a model can be adapted to."""
    return task_names.names()


def list_tunes() -> list[str]:
    """The ways of tuning a model to a task."""
    return tune_names.names()


def check(
    recipe: str | Recipe, *, size: str | None = None, variant: str = "paper", settings: Sequence[str] = ()
) -> Iterator[Outcome]:
    """What came of each contract that applies to a recipe, one after the other; by default of its smallest size.

    `recipe`: a name, a .py file such as "./mine.py", or a Recipe."""
    from unmask.contracts import check as outcomes

    smallest = None if isinstance(recipe, Recipe) else recipes.smallest(recipe)
    return outcomes(named(recipe, size=size or smallest, variant=variant, settings=settings))
