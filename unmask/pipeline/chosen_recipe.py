"""The recipe of a stage, and the settings that let it read triples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unmask import recipes, run
from unmask.axes import gives_of
from unmask.errors import UserError
from unmask.pipeline.description import Pipeline, PretrainingStage
from unmask.recipe import MAIN, Recipe
from unmask.recipe_file import files_used_by, is_path

TRACK = "triples"
_MASKED = "hide=Masked(units=Second, budget=1.0, replace=Mask(mask=1.0, random=0.0)), predict=(tokens,)"


def chosen_recipe(pipeline: Pipeline, stage: PretrainingStage, *, triples: bool = True) -> Recipe:
    """The recipe that a stage trains, as if it did not continue from another one. `triples`: with their track."""
    found = _get(pipeline, stage, ())
    return _get(pipeline, stage, triples_settings(found, stage.mix, None)) if triples and stage.triples else found


def _get(pipeline: Pipeline, stage: PretrainingStage, more: Sequence[str]) -> Recipe:
    settings = [*pipeline.settings, *stage.settings, *more]
    name = stage.recipe or pipeline.recipe
    return recipes.get(name, size=size_of(pipeline, stage), variant=pipeline.variant, settings=settings)


def size_of(pipeline: Pipeline, stage: PretrainingStage) -> str:
    """The size of the network; if a stage has another recipe that lacks this size, any size that it has."""
    first = next((one.run for one in (*pipeline.stages, *pipeline.left_out) if one.run), None)
    size = run.recipe_to_continue(Path(first), None).size if first else pipeline.size
    if not first and stage.recipe in (None, pipeline.recipe):
        return size
    name = stage.recipe or pipeline.recipe
    try:
        recipes.get(name, size=size, variant=pipeline.variant)
    except UserError:
        return recipes.smallest(name)
    return size


def own_file(pipeline: Pipeline) -> str | None:
    """The user's recipe file, if the runs of a pipeline have parts of it."""
    stages = [stage for stage in pipeline.stages if isinstance(stage, PretrainingStage)]
    names = {stage.recipe or pipeline.recipe: stage for stage in stages}
    return next(
        (name for name, of in names.items() if is_path(name) and files_used_by(chosen_recipe(pipeline, of))), None
    )


def triples_settings(recipe: Recipe, mix: float, data: Path | None) -> list[str]:
    """The settings for a track that reads triples in a share of the steps. `data`: its folder; None: the data of the run.

    A recipe that hides tokens hides the second text. One that predicts the next token reads the triple as it is."""
    place = f"data=('{data}',), " if data else ""
    hides = "" if "from before" in gives_of(recipe.hide) else ", " + _MASKED
    turns = [_turns(stage.turns or {MAIN: 1.0}, mix) for stage in recipe.schedule]
    same = all(one == turns[0] for one in turns)
    shown = [f"schedule.*.turns={turns[0]}"] if same else [f"schedule.{n}.turns={one}" for n, one in enumerate(turns)]
    return [*shown, f"tracks.{TRACK}=Track({place}arrange=SourceTarget{hides})"]


def _turns(before: dict[str, float], mix: float) -> dict[str, float]:
    if mix == 1:
        return {TRACK: 1}
    total = sum(before.values())
    return {name: round((1 - mix) * turn / total, 6) for name, turn in before.items()} | {TRACK: mix}
