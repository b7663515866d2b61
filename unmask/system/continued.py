"""Onward: a recipe goes on from an earlier run. What its weights mean is the run's; how they are trained, the recipe's."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.errors import require
from unmask.recipe import Recipe
from unmask.see import Permuted
from unmask.settings import flat
from unmask.system.check import second_stream

# settings of a system and its networks that do not say what the weights mean
TRAINING = ("dropout", "attention_dropout", "activation_dropout", "learned")


def with_network_of(recipe: Recipe, base: Recipe) -> Recipe:
    """The recipe with the network of an earlier one; segments that its view tells apart are added."""
    kinds = [type(r.system).__name__ for r in (recipe, base)]
    require(
        kinds[0] == kinds[1],
        f"{recipe.name} trains a {kinds[0]}, and the run to go on from, of {base.name}, has the network of a {kinds[1]}: "
        f"name a run of {recipe.name}, or leave --from out",
    )
    require(
        isinstance(recipe.see, Permuted) == second_stream(base),
        f"{recipe.name} {'needs' if second_stream(recipe) else 'has no use for'} a second stream, and the run to go on from, of "
        f"{base.name}, has {'one' if second_stream(base) else 'none'}: name a run of {recipe.name}, or leave --from out",
    )
    system: Any = _trained_as(base.system, recipe.system)
    segments = recipe.see.segments  # type: ignore[attr-defined]
    if segments and segments > system.backbone.segments:
        system = dataclasses.replace(system, backbone=dataclasses.replace(system.backbone, segments=segments))
    rows = max(stage.length for stage in recipe.schedule)
    return recipe.replace(system=system, size=base.size, reads=max(rows, base.longest))


def check_continued(asked: Recipe, usual: Recipe, base: Recipe) -> None:
    """Refuse what is asked of the network, beyond what the recipe usually has, and cannot be had from the base."""
    before, now, made = (flat(recipe) for recipe in (usual, asked, with_network_of(asked, base)))
    lost = [n for n in now if n.split(".")[0] == "system" and now[n] != before.get(n) and now[n] != made.get(n)]
    require(
        not lost,
        f"the network comes from a run of {base.name}, and {', '.join(f'{n}={now[n]}' for n in lost[:3])} would have no "
        "effect: leave --size and --set system... out, and a --variant that changes the network; or leave --from out",
    )


def _trained_as(before: Any, asked: Any) -> Any:
    """A part as it was before, with the settings of its training that are asked for."""
    changed = {}
    for field in dataclasses.fields(before):
        old, new = getattr(before, field.name), getattr(asked, field.name)
        if field.name in TRAINING:
            changed[field.name] = new
        elif dataclasses.is_dataclass(old) and type(old) is type(new):
            changed[field.name] = _trained_as(old, new)
    return dataclasses.replace(before, **changed)
