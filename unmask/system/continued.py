"""Continued: a recipe that continues from an earlier run. The run decides the network. The recipe decides the training."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.errors import require
from unmask.recipe import Recipe
from unmask.settings import flat

STREAM = "second stream"
# settings of a system and its networks that change only the training: the same weights work with other values
TRAINING = (
    "dropout", "attention_dropout", "activation_dropout", "learned", "generator_rate", "discriminator_rate", "temperature",
)  # fmt: skip


ADDED = ("knowledge",)  # parts of a network that a recipe may add to the network of an earlier run


def with_network_of(recipe: Recipe, base: Recipe) -> Recipe:
    """The recipe with the network of an earlier recipe. If its tracks need more segment kinds, they are added."""
    kinds = [type(r.system).__name__ for r in (recipe, base)]
    require(
        kinds[0] == kinds[1],
        (
            "{name} trains a {kinds}, but the run to continue from is a run of {name_2} and has the network of a "
            "{kinds_2}: give a run of {name}, or leave --from out"
        ),
        name=recipe.name,
        kinds=kinds[0],
        name_2=base.name,
        kinds_2=kinds[1],
    )
    streams = [STREAM in r.system.backbone.gives for r in (recipe, base)]
    require(
        streams[0] == streams[1],
        (
            "{name} {streams} a second stream, but the run to continue from is a run of {name_2} and has "
            "{streams_2}: give a run of {name}, or leave --from out"
        ),
        name=recipe.name,
        streams="needs" if streams[0] else "does not use",
        name_2=base.name,
        streams_2="one" if streams[1] else "none",
    )
    system: Any = _trained_as(base.system, recipe.system)
    segments = 1 + max((n for track in recipe.all_tracks().values() for n in track.segments), default=-1)
    if segments > system.backbone.segments:
        system = dataclasses.replace(system, backbone=dataclasses.replace(system.backbone, segments=segments))
    rows = max(stage.length for stage in recipe.schedule)
    return recipe.replace(system=system, size=base.size, reads=max(rows, base.longest), start=base.start)


def check_continued(asked: Recipe, usual: Recipe, base: Recipe) -> None:
    """Refuse settings of the network that the user changed and that the network of the base run does not have."""
    before, now, made = (flat(recipe) for recipe in (usual, asked, with_network_of(asked, base)))
    lost = [
        n for n in now if n.split(".")[0] in ("system", "start") and now[n] != before.get(n) and now[n] != made.get(n)
    ]
    require(
        not lost,
        (
            "{lost} would have no effect, because the network comes from a run of {name}: leave out --size, --set "
            "system... or start..., and a --variant that changes the network, or leave out --from"
        ),
        lost=", ".join(f"{n}={now[n]}" for n in lost[:3]),
        name=base.name,
    )


def _trained_as(before: Any, asked: Any) -> Any:
    """The earlier part `before`, with the training settings of the part `asked`."""
    changed = {}
    for field in dataclasses.fields(before):
        old, new = getattr(before, field.name), getattr(asked, field.name)
        if field.name in TRAINING or (field.name in ADDED and old is None):
            changed[field.name] = new
        elif dataclasses.is_dataclass(old) and type(old) is type(new):
            changed[field.name] = _trained_as(old, new)
    return dataclasses.replace(before, **changed)
