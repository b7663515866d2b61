"""Objectives: what a recipe predicts, and the weight of each loss."""

from __future__ import annotations

from unmask import curves
from unmask.axes import Curve, Objective
from unmask.predict import Label
from unmask.recipe import FullTrack, Recipe, Stage

SENTENCE = "sentence"  # the name of the objective that a recipe's `arrange` adds


def predictions(recipe: Recipe) -> dict[str, Objective]:
    """All objectives of a recipe: those of `predict`, and the sentence task of its `arrange`, if it has one."""
    classes = recipe.arrange.classes
    return recipe.predict | ({SENTENCE: Label(classes=classes)} if classes else {})


def objectives(recipe: Recipe) -> dict[str, Objective]:
    """The same with one entry for each loss: an objective for every layer becomes several entries."""
    layers = recipe.system.backbone.layers
    return {n: p for name, part in predictions(recipe).items() for n, p in part.each(name, layers).items()}


def chosen(recipe: Recipe, track: FullTrack) -> dict[str, Objective]:
    """What is predicted in a track: it names an entry of `predict`, or a loss that the entry stands for."""
    known, layers, named = predictions(recipe), recipe.system.backbone.layers, set(track.predict or ())
    return {n: p for n, p in known.items() if track.predict is None or named & {n, *p.each(n, layers)}}


def asked(recipe: Recipe, track: FullTrack) -> list[Objective]:
    """The objectives that are asked in a track: its own, and those that the system itself asks in every track."""
    return [part for parts in recipe.system.asks(chosen(recipe, track)).values() for part in parts.values()]


def weights(recipe: Recipe, stage: Stage) -> dict[str, float | Curve]:
    """The weight of each loss in a stage. A weight for all layers applies to each layer that has no weight of its own."""
    found: dict[str, float | Curve] = {}
    layers, known = recipe.system.backbone.layers, losses(recipe)
    for name, weight in stage.weights.items():
        part = recipe.predict.get(name)
        each = part.each(name, layers) if part is not None else {}
        found |= {n: curves.of(weight, head.layer or layers, layers) for n, head in each.items() if n != name}
    return found | {name: weight for name, weight in stage.weights.items() if name in known}


def losses(recipe: Recipe) -> list[str]:
    """The names of all losses."""
    return [*objectives(recipe), *recipe.system.losses]
