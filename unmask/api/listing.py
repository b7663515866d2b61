"""What there is: recipes and their values, parts and their facts, tasks; and whether a recipe keeps the contracts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from unmask import axes, recipes, task_names
from unmask.api.choose_recipe import named
from unmask.errors import unknown
from unmask.part_names import parts_of
from unmask.recipe import Recipe
from unmask.recipe_json import plain
from unmask.settings import flat

if TYPE_CHECKING:
    from unmask.contracts import Outcome

# the axes of a recipe, in the order of its sentence, and what a part of each must be
AXES: dict[str, type] = {
    "tokenizer": axes.TokenizerKind, "arrange": axes.Arrange, "hide": axes.Hide, "units": axes.Units,
    "replace": axes.Replace, "see": axes.See, "backbone": axes.Backbone, "predict": axes.Objective,
    "system": axes.System, "optimise": axes.Optimise, "curve": axes.Curve,
}  # fmt: skip
TASK = "task"


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


@dataclass(frozen=True)
class PartEntry:
    """One part, with its usual values."""

    axis: str
    name: str
    about: str  # the first line of its documentation
    needs: tuple[str, ...]  # facts that other parts must give; alternatives have | between them
    gives: tuple[str, ...]  # facts that other parts may rely on


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
    names = [name for name in dict.fromkeys([*a, *b]) if name != "name" and a.get(name) != b.get(name)]
    return [Difference(name, a.get(name), b.get(name)) for name in names]


def list_parts(axis: str | None = None) -> list[PartEntry]:
    """Every part of an axis such as "hide", or of all axes, with the facts of its usual values."""
    known = [*AXES, TASK]
    if axis is not None and axis not in known:
        raise unknown("axis", axis, known)
    chosen = known if axis is None else [axis]
    return [_entry(name, part) for name in chosen for part in _parts(name)]


def list_tasks() -> list[str]:
    """The kinds of task that a model can be adapted to."""
    return task_names.names()


def check(
    recipe: str | Recipe, *, size: str | None = None, variant: str = "paper", settings: Sequence[str] = ()
) -> Iterator[Outcome]:
    """What came of each contract that applies to a recipe, one after the other; by default of its smallest size.

    `recipe`: a name, a .py file such as "./mine.py", or a Recipe."""
    from unmask.contracts import check as outcomes

    smallest = None if isinstance(recipe, Recipe) else recipes.smallest(recipe)
    return outcomes(named(recipe, size=size or smallest, variant=variant, settings=settings))


def _parts(axis: str) -> list[Any]:
    """The parts of an axis, with their usual values."""
    if axis == TASK:
        from unmask import tasks

        return [tasks.get(name) for name in list_tasks()]
    return [part() for part in parts_of(AXES[axis], None).values()]


def _entry(axis: str, part: axes.PartLike) -> PartEntry:
    """A part with all parts in it: what one of them gives to another is no longer needed."""
    about = (inspect.getdoc(type(part)) or "").partition("\n")[0]
    gives = axes.gives_of(part)
    needs = [need for _, inner in axes.parts_in(part) for need in inner.needs if not gives & set(need.alternatives)]
    facts = tuple(dict.fromkeys(need.fact for need in needs))
    return PartEntry(axis, type(part).__name__, about, facts, tuple(sorted(gives)))
