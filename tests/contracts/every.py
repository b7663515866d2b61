"""Every case: each recipe in each variant, with a network that is narrower than tiny; built once for all tests."""

from __future__ import annotations

import dataclasses
import importlib
from functools import cache
from typing import Any

from unmask import recipes
from unmask.contracts import Case, Contract, SmallData, applying, make_case, shortened
from unmask.recipe import Recipe
from unmask.settings import flat, override

SMALL = SmallData()
# a network of this width computes the same way in half the time; how fast a recipe learns is measured at size tiny
NARROW = {"width": 64, "feedforward": 256, "inner": 128, "cells": 32, "head": 32, "embedding": 48, "length": 256}
NARROW_GENERATOR = {"width": 32, "feedforward": 128, "length": 256}
NAMES = ("str", "str | None")  # the types of fields that name a language, a file or a column: they are like numbers


@cache
def case(name: str, variant: str = "paper") -> Case:
    return make_case(narrow(recipes.get(name, size="tiny", variant=variant)), SMALL)


@cache
def tiny_case(name: str, variant: str = "paper") -> Case:
    """The case with the network of size tiny."""
    return make_case(recipes.get(name, size="tiny", variant=variant), SMALL)


def narrow(recipe: Recipe) -> Recipe:
    known, values = flat(recipe), {"backbone": NARROW, "generator": NARROW_GENERATOR}
    paths = {f"system.{network}.{name}": value for network, given in values.items() for name, value in given.items()}
    return override(recipe, [f"{path}={value}" for path, value in paths.items() if known.get(path) is not None])


def variants(name: str) -> list[str]:
    return list(importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}").VARIANTS)


def pairs() -> list[tuple[Contract, str, str]]:
    """Every contract with every recipe and variant that it applies to.

    Contracts that train take most of the time. Variants of a recipe that differ only in a number, or in how they are
    optimised, are trained once. The parts decide which contracts apply, so no data is made here.
    """
    found = []
    for name in recipes.names():
        shapes: list[Any] = []
        for variant in variants(name):
            recipe = shortened(recipes.get(name, size="tiny", variant=variant))
            new = shape(recipe) not in shapes
            shapes.append(shape(recipe))
            found += [(c, name, variant) for c in applying(Case(recipe, SMALL)) if new or not c.trains]
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
