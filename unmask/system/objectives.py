"""Objectives: what a recipe predicts, and the weight of each loss."""

from __future__ import annotations

from unmask import curves
from unmask.axes import Curve, Objective
from unmask.predict import Label
from unmask.recipe import SENTENCE, FullTrack, Recipe, Stage


def predictions(recipe: Recipe) -> dict[str, Objective]:
    """All objectives of a recipe: those of `predict`, and the sentence task of its `arrange`, if it has one.

    If tracks take turns: those that some track asks, with the objectives of each track."""
    if not recipe.takes_turns:
        return _shared(recipe)
    read = [track for track in recipe.all_tracks().values() if track.share > 0]
    found = {name: part for track in read for name, part in chosen(recipe, track).items()}
    order = list(_shared(recipe))  # those of the recipe come first
    return {name: found[name] for name in sorted(found, key=lambda n: order.index(n) if n in order else len(order))}


def _shared(recipe: Recipe) -> dict[str, Objective]:
    """The objectives of `predict`, and the sentence task of `arrange`."""
    classes = recipe.arrange.classes
    return recipe.predict | ({SENTENCE: Label(classes=classes)} if classes else {})


def objectives(recipe: Recipe) -> dict[str, Objective]:
    """The same with one entry for each loss: an objective for every layer becomes several entries."""
    layers = recipe.system.backbone.layers
    return {n: p for name, part in predictions(recipe).items() for n, p in part.each(name, layers).items()}


def chosen(recipe: Recipe, track: FullTrack) -> dict[str, Objective]:
    """What is predicted in a track: it names an entry of `predict`, or a loss that the entry stands for.

    A track that takes turns adds its own objectives, and the sentence task of its own `arrange`."""
    known, layers, named = _shared(recipe), recipe.system.backbone.layers, set(track.predict or ())
    found = {n: p for n, p in known.items() if track.predict is None or named & {n, *p.each(n, layers)}}
    if track.sentence == SENTENCE:
        return found | track.own
    own: dict[str, Objective] = {track.sentence: Label(classes=track.arrange.classes)} if track.arrange.classes else {}
    return {n: p for n, p in found.items() if n != SENTENCE} | track.own | own


def asked_losses(recipe: Recipe, track: FullTrack) -> list[str]:
    """The names of the losses of objectives that a batch with rows of this track computes.

    If tracks share batches, every batch computes all of them: a track hides the targets that it leaves out."""
    if not recipe.takes_turns:
        return list(objectives(recipe))
    layers = recipe.system.backbone.layers
    return [n for name, part in chosen(recipe, track).items() for n in part.each(name, layers)]


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
