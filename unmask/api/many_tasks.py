"""A folder of tasks: train one model on all of them, and score it on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from unmask import adapt, infer, run, screen, trials
from unmask.adapt.many_settings import Many
from unmask.adapt.many_tasks import Labels, adapt_many
from unmask.adapt.resuming import claim
from unmask.adapt.ways import tuning_settings
from unmask.comparison.job import main_score
from unmask.comparison.task_files import TaskFiles, find
from unmask.errors import require
from unmask.evaluate import evaluate_examples
from unmask.progress import Progress, Tell, follow, tell_notes, tell_notice
from unmask.recipe_file import file_used_by
from unmask.settings import override
from unmask.train import log

SHARED = (
    "epochs",
    "examples",
    "rate",
    "warmup",
    "decay",
    "layer_decay",
    "length",
    "patience",
)  # one value for all tasks


def adapt_folder(
    base: infer.Model, folder: Path, out: Path, *, settings: Sequence[str], seed: int, fresh: bool, overwrite: bool,
    resume: bool, stop: Callable[[], bool], progress: Progress,
) -> infer.Model:  # fmt: skip
    """Train one model on the tasks of a folder, write its report, and open it."""
    single = next(
        (path for path in sorted(folder.iterdir()) if path.is_file() and path.name.startswith("train.")), None
    )
    require(
        single is None,
        "{folder} is the folder of one task: give its file {single} instead, or the folder that holds the folders of several tasks",
        folder=folder,
        single=single,
    )
    many = override(Many(), settings)
    claim(out, resume=resume, overwrite=overwrite, base=base.folder, reads=[folder])
    files, notices = find(folder)
    labelled = [task for task in files if task.kind is not None]
    notices += [f"{task.test} has no training examples: it is left out" for task in files if task.kind is None]
    tasks, said = _read(labelled, seed)
    records = adapt_many(
        base, tasks, out, many=many, seed=seed, fresh=fresh, overwrite=overwrite, resume=resume, stop=stop
    )
    told: Iterator[dict[str, Any]] = ({"event": "notice", "text": text} for text in [*notices, *said])
    follow(chain(told, records), progress, partial(screen.training, title=f"adapting {base.folder.name}"))
    model = infer.open_run(out, device=base.device, recipe=run.file_for(out, file_used_by(base.recipe)))
    history = log.read(out)
    trials.write_report(model, history[-1], history, ())
    return model


def _read(files: Sequence[TaskFiles], seed: int) -> tuple[list[Labels], list[str]]:
    """The tasks with their examples, and what a user should know about them."""
    found, said = [], []
    for task in files:
        part = task.task()
        assert task.train is not None
        read = adapt.read_files(part, task.train, task.dev)
        examples = task.drawn(read.examples, seed)
        found.append(Labels(task.name, part, str(task.train), examples, read.dev))
        said += [f"{task.name}: {text}" for text in read.notices]
        of_task, of_tune = tuning_settings(task.settings)
        lost = [one for one in of_task if one.partition("=")[0].strip() in SHARED] + [f"tune.{one}" for one in of_tune]
        lost += [f"tune {task.tune}"] if task.tune else []
        if lost:
            said.append(
                f"{task.name}: {', '.join(lost)} is not used, because tasks that train together share it: use --set"
            )
    return found, said


def evaluate_folder(model: infer.Model, folder: Path, tell: Tell) -> dict[str, dict[str, Any]]:
    """The scores of a model with several tasks on the test file of each, by the names of the tasks."""
    known = model.recipe.tasks
    require(
        bool(known),
        "{folder} is a folder of tasks, but {run} was not trained on several tasks: give a file",
        folder=folder,
        run=model.folder,
    )
    files, notices = find(folder)
    mine = {task.name: task for task in files if task.name in known and task.kind is not None}
    others = [task.name for task in files if task.name not in mine]
    for text in (
        *notices,
        *([f"{model.folder} was not trained on {', '.join(others)}: left out"] if others else []),
        *([f"{folder} has no {', '.join(lost)}"] if (lost := [name for name in known if name not in mine]) else []),
    ):
        tell_notice(text, tell, depth=2)
    require(bool(mine), "{folder} has none of the tasks of {run}: {known}", folder=folder, run=model.folder, known=", ".join(known))  # fmt: skip
    return {name: _scored(infer.one_task(model, name), task, tell) for name, task in mine.items()}


def _scored(model: infer.Model, task: TaskFiles, tell: Tell) -> dict[str, Any]:
    part = infer.task_of_model(model)
    examples, notes = part.read(task.test, None)
    found = evaluate_examples(model, examples)
    tell_notes({f"{text} ({task.name})": count for text, count in (found.pop("notes") | dict(notes)).items()}, tell, depth=3)  # fmt: skip
    return {"file": str(task.test), "main": main_score(found, part)} | found
