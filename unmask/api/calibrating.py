"""Probabilities that can be trusted: a temperature for an adapted model, and answers only where it is sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask import infer, run
from unmask.calibration import best_temperature, calibration_error, tempered
from unmask.errors import UserError, require
from unmask.infer.answer import TaskReader
from unmask.recipe import MAIN, Recipe
from unmask.recipe_file import file_used_by
from unmask.tasks.classify import Columns
from unmask.train import checkpoint


def calibrate_run(model: infer.Model, file: Path, columns: Columns) -> dict[str, float]:
    """Find the best temperature on a file, and write it to the run."""
    task: Any = infer.task_of_model(model)
    if not task.has_temperature:
        raise UserError(
            "{folder} was adapted to {task}, and its answers have no probabilities: calibrate a model that gives classes, tags, "
            "labels, choices or answers from a text",
            folder=model.folder,
            task=type(task).__name__.lower(),
        )
    examples, _ = task.read(file, columns)
    task.check(examples, str(model.folder))
    plain = replace(task, temperature=1.0)
    table = plain.probability_table(examples, plain.answer(TaskReader(model), examples).answers)
    require(
        table is not None and bool((table.truth >= 0).any()),
        "{file} has no right answer that {folder} gives a probability to: give other examples",
        file=file,
        folder=model.folder,
    )
    shares, truth = table.shares, table.truth
    found = best_temperature(shares, truth)
    changed = _with_task(model, task, replace(task, temperature=round(found, 4)))
    checkpoint.write_text(run.to_json(changed), model.folder / run.RECIPE)
    return {
        "temperature": round(found, 4),
        "error_before": calibration_error(tempered(shares, task.temperature), truth),
        "error": calibration_error(tempered(shares, found), truth),
    }


def _with_task(model: infer.Model, task: Any, calibrated: Any) -> Recipe:
    """The recipe of the run with the calibrated task: its only one, or one of several."""
    whole = run.read_recipe(model.folder, file_used_by(model.recipe))
    mine = model.system.tracks[MAIN].arrange
    name = next((name for name in whole.tasks if whole.tracks[name].arrange == mine), None)
    if whole.task is not None or name is None:
        return model.recipe.replace(task=calibrated)
    return whole.replace(tracks=whole.tracks | {name: _track(whole.tracks[name], calibrated)})


def _track(track: Any, task: Any) -> Any:
    return replace(track, arrange=replace(track.arrange, task=task))


def if_sure(answers: Sequence[Any], threshold: float) -> list[Any]:
    """The answers, without a label or a text where its probability is under the threshold."""
    require(0 < threshold <= 1, "--threshold is a probability over 0, at most 1; got {threshold}", threshold=threshold)
    require(
        all(hasattr(one, "if_sure") for one in answers),
        "--threshold is for models that give labels, or answers from a text, and this one gives the column {kind!r}: leave --threshold out",
        kind=next(iter(answers[0].columns(1))) if answers else "",
    )
    return [one.if_sure(threshold) for one in answers]
