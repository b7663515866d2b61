"""Continued: a recipe that continues from an earlier run. The run decides the network; the recipe, how it is trained."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.errors import require
from unmask.recipe import Recipe
from unmask.settings import flat

# settings of a system and its networks that do not say what the weights mean
STREAM = "second stream"
TRAINING = ("dropout", "attention_dropout", "activation_dropout", "learned")


def with_network_of(recipe: Recipe, base: Recipe) -> Recipe:
    """The recipe with the network of an earlier one; segments that its view tells apart are added."""
    kinds = [type(r.system).__name__ for r in (recipe, base)]
    require(
        kinds[0] == kinds[1],
        f"{recipe.name} trains a {kinds[0]}, and the run to continue from, of {base.name}, has the network of a {kinds[1]}: "
        f"name a run of {recipe.name}, or leave --from out",
    )
    streams = [STREAM in r.system.backbone.gives for r in (recipe, base)]
    require(
        streams[0] == streams[1],
        f"{recipe.name} {'needs' if streams[0] else 'has no use for'} a second stream, and the run to continue from, of "
        f"{base.name}, has {'one' if streams[1] else 'none'}: name a run of {recipe.name}, or leave --from out",
    )
    system: Any = _trained_as(base.system, recipe.system)
    segments = 1 + max((n for track in recipe.all_tracks().values() for n in track.segments), default=-1)
    if segments > system.backbone.segments:
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
