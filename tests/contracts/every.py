"""Every case: each recipe in each variant, at size tiny; built once for all tests."""

from __future__ import annotations

import dataclasses
import importlib
from functools import cache
from typing import Any

from unmask import recipes
from unmask.contracts import Case, Contract, SmallData, applying, make_case
from unmask.recipe import Recipe

SMALL = SmallData()
NAMES = ("str", "str | None")  # the types of fields that name a language, a file or a column: they are like numbers


@cache
def case(name: str, variant: str = "paper") -> Case:
    return make_case(recipes.get(name, size="tiny", variant=variant), SMALL)


def variants(name: str) -> list[str]:
    return list(importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}").VARIANTS)


def pairs() -> list[tuple[Contract, str, str]]:
    """Every contract with every recipe and variant that it applies to.

    Contracts that train take most of the time. Variants of a recipe that differ only in a number, or in how they are
    optimised, are trained once.
    """
    found = []
    for name in recipes.names():
        shapes: list[Any] = []
        for variant in variants(name):
            new = shape(case(name, variant).recipe) not in shapes
            shapes.append(shape(case(name, variant).recipe))
            found += [(c, name, variant) for c in applying(case(name, variant)) if new or not c.trains]
    return found


def shape(recipe: Recipe) -> Any:
    """What a recipe hides, sees, arranges, predicts and with what, without its numbers."""
    axes = (recipe.hide, recipe.see, recipe.arrange, recipe.system, recipe.predict, recipe.tracks)
    stages = [_without_numbers(stage.hide) for stage in recipe.schedule]
    return [*(_without_numbers(value) for value in axes), [s for i, s in enumerate(stages) if s not in stages[:i]]]


def _without_numbers(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = [f for f in dataclasses.fields(value) if f.type not in NAMES]
        return [type(value).__name__, *(_without_numbers(getattr(value, f.name)) for f in fields)]
    if isinstance(value, dict):
        return {name: _without_numbers(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_without_numbers(item) for item in value]
    return "number" if value is None or type(value) in (int, float) else value
