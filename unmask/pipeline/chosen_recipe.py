"""The recipe of a stage, and the settings that let it read triples and labelled examples in turn with text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from unmask import recipes, run
from unmask.axes import gives_of
from unmask.errors import UserError
from unmask.pipeline.description import LabelledFile, Pipeline, PretrainingStage
from unmask.recipe import MAIN, Recipe
from unmask.recipe_file import files_used_by, is_path

TRIPLES = "triples"  # the name of their track
_MASKED = "hide=Masked(units=Second, budget=1.0, replace=Mask(mask=1.0, random=0.0)), predict=(tokens,)"


def chosen_recipe(pipeline: Pipeline, stage: PretrainingStage, *, tracks: bool = True) -> Recipe:
    """The recipe that a stage trains, as if it did not continue from another one. `tracks`: with those of the stage."""
    found = _get(pipeline, stage, ())
    return _get(pipeline, stage, track_settings(found, stage, None)) if tracks else found


def _get(pipeline: Pipeline, stage: PretrainingStage, more: Sequence[str]) -> Recipe:
    settings = [*pipeline.settings, *stage.settings, *more]
    name = stage.recipe or pipeline.recipe
    return recipes.get(name, size=size_of(pipeline, stage), variant=pipeline.variant, settings=settings)


def size_of(pipeline: Pipeline, stage: PretrainingStage) -> str:
    """The size of the network; if a stage has another recipe that lacks this size, any size that it has."""
    root = pipeline.root(stage)
    size = run.recipe_to_continue(Path(root), None).size if root else pipeline.size
    if not root and stage.recipe in (None, pipeline.recipe):
        return size
    name = stage.recipe or pipeline.recipe
    try:
        recipes.get(name, size=size, variant=pipeline.variant)
    except UserError:
        return recipes.smallest(name)
    return size


def own_file(pipeline: Pipeline) -> str | None:
    """The user's recipe file, if the runs of a pipeline have parts of it."""
    names = {stage.recipe or pipeline.recipe: stage for stage in pipeline.pretraining}
    return next(
        (name for name, of in names.items() if is_path(name) and files_used_by(chosen_recipe(pipeline, of))), None
    )


def track_settings(recipe: Recipe, stage: PretrainingStage, data: Path | None) -> list[str]:
    """The settings for the tracks that read triples and labelled examples. `data`: the folder of the triples; None: they are
    the data of the run. Texts have double quotes, so that a shell shows the settings in single ones."""
    tracks = {TRIPLES: _triples_track(recipe, data)} if stage.triples else {}
    tracks |= {one.name: _labelled_track(one) for one in stage.labelled}
    if not tracks:
        return []
    turns = [_turns(part.turns or {MAIN: 1.0}, stage.mix, list(tracks)) for part in recipe.schedule]
    same = all(one == turns[0] for one in turns)
    places = ["*"] if same else [str(number) for number in range(len(turns))]
    shown = [f"schedule.{place}.turns={json.dumps(one)}" for place, one in zip(places, turns, strict=False)]
    return [*shown, *(f"tracks.{name}={track}" for name, track in tracks.items())]


def _triples_track(recipe: Recipe, data: Path | None) -> str:
    """A recipe that hides tokens hides the second text. One that predicts the next token reads the triple as it is."""
    place = f"data=({json.dumps(str(data))},), " if data else ""
    hides = "" if "from before" in gives_of(recipe.hide) else ", " + _MASKED
    return f"Track({place}arrange=SourceTarget{hides})"


def _labelled_track(one: LabelledFile) -> str:
    dev = f", dev={json.dumps(one.dev)}" if one.dev else ""
    return f"Track(arrange=Labelled(file={json.dumps(one.train)}{dev}))"


def _turns(before: dict[str, float], mix: float, tracks: list[str]) -> dict[str, float]:
    """The turns of all tracks in a stage of the recipe. The tracks of the pipeline share `mix` equally."""
    added = dict.fromkeys(tracks, _short(mix / len(tracks)))
    total = sum(before.values())
    return ({name: _short((1 - mix) * turn / total) for name, turn in before.items()} if mix < 1 else {}) | added


def _short(number: float) -> float:
    """A number that is shown in a command: 1, 0.25, 0.333333."""
    return int(number) if number == int(number) else round(number, 6)
