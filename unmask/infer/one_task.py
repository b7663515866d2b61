"""One task of a model that was trained on several: the same weights, with the head of this task."""

from __future__ import annotations

from dataclasses import replace

from unmask.axes import gives_of
from unmask.data import FromTask
from unmask.errors import UserError, unknown
from unmask.infer.model import Model
from unmask.recipe import Recipe
from unmask.system import chosen


def one_task(model: Model, name: str) -> Model:
    """The model as one that was adapted to this task alone. It shares the weights of the model."""
    known = model.recipe.tasks
    if not known:
        raise UserError(
            "{folder} has no tasks by name, got --task {name}: leave it out, or train on a folder of tasks with 'unmask adapt'",
            folder=model.folder,
            name=name,
        )
    if name not in known:
        raise unknown("task", name, known)
    system = model.system.alone(name, known[name].head)
    return replace(model, recipe=_recipe(model.recipe, name), system=system, recordings={})


def _recipe(recipe: Recipe, name: str) -> Recipe:
    head, parts = recipe.tasks[name].head, chosen(recipe, recipe.all_tracks()[name])
    predict = {head if loss == name else loss: part for loss, part in parts.items()}
    stages = tuple(replace(stage, turns={}, weights={}, hide=None) for stage in recipe.schedule)
    # without an objective that scores tokens, a later adaptation cannot predict the next token either
    usual = recipe.adapt if "token scores" in gives_of(predict) else replace(recipe.adapt, language=0.0)
    alone = recipe.alone(name)
    return alone.replace(arrange=FromTask(), predict=predict, schedule=stages, adapt=usual, task=recipe.tasks[name])
