"""Adapt a pretrained model to a task: one function for every kind of task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from unmask import run
from unmask.adapt.data_notices import data_notices
from unmask.adapt.epochs import of_dev, rounds
from unmask.adapt.inherit import inherit
from unmask.axes import Judged, Task
from unmask.data.examples import rows_of_task
from unmask.infer.answer import TaskReader
from unmask.infer.model import Model
from unmask.recipe import Recipe
from unmask.tasks.classify import Columns
from unmask.train import Trainer

__all__ = ["adapt", "adapt_to_files", "inherit"]


def adapt_to_files(
    base: Model, train: str | Path, out: str | Path, *, task: Task, dev: str | Path | None = None,
    columns: Columns | None = None, seed: int = 0, fresh: bool = False, overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Adapt a model to the examples of a file, yielding records. The task reads the file."""
    read = [task.read(Path(file), columns) if file else ([], Counter[str]()) for file in (train, dev)]
    (examples, _), (held, _) = read
    described = filter(None, [task.described(Path(file), columns) for file in (train, dev) if file])
    notices: list[dict[str, Any]] = [{"event": "notice", "text": text} for text in described]
    said = [f"{count:,} {note}" for _, notes in read for note, count in notes.items()]
    notices += [{"event": "notice", "text": text} for text in said + data_notices(task, examples, held)]
    records = adapt(base, examples, out, task=task, dev=held, seed=seed, fresh=fresh, overwrite=overwrite, stop=stop)
    return chain(notices, records)


def adapt(
    base: Model, examples: Sequence[Any], out: str | Path, *, task: Task, dev: Sequence[Any] = (), seed: int = 0,
    fresh: bool = False, overwrite: bool = False, stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Adapt a model, yielding records (see `rounds`). With `dev`, the weights of the best epoch on `dev` are saved.

    `fresh` starts from random weights instead of the pretrained ones, as a control without pretraining."""
    task = task.learn(examples)
    recipe, out = task.recipe(base), Path(out)
    run.claim(out, overwrite=overwrite, base=base.folder)
    for some in (examples, dev):
        task.check(some, "the first training example")
    task = recipe.task.made(examples=len(examples), seed=seed, fresh=fresh)
    model = _model(base, recipe.replace(task=task), out, seed, fresh)
    rows, notes = rows_of_task(task.lay_out(examples), base.tokenizer, recipe.layout, model.length)
    if dev:
        notes.update(of_dev(rows_of_task(task.lay_out(dev), base.tokenizer, recipe.layout, model.length)[1]))
    start = task.baseline(dev or examples)
    start |= {"baseline_of": "dev" if dev else "train"} if "baseline" in start else {}
    judge = _Judge(model, task, dev)
    yield from rounds(
        model, rows, task.hyperparameters(base.recipe), notes=notes, seed=seed, start=start,
        validate=judge if dev else None, stop=stop,
        remarks=lambda: task.notices(TaskReader(model), examples, dev, judge.best),
    )  # fmt: skip


def _model(base: Model, recipe: Recipe, out: Path, seed: int, fresh: bool) -> Model:
    """The model to train: it has the weights of the pretrained model (unless `fresh`) and a new head."""
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)
    if not fresh:
        assert recipe.task is not None
        inherit(system, base, recipe.task.head)
    return Model(system, recipe, base.tokenizer, out, base.device)


class _Judge:
    """Scores a model on the dev set after each epoch, and remembers the best."""

    def __init__(self, model: Model, task: Task, dev: Sequence[Any]) -> None:
        self.model, self.task, self.dev = model, task, dev
        self.best: Judged | None = None

    def __call__(self, trainer: Trainer) -> dict[str, float]:
        with trainer.machine.autocast():
            found = self.task.judge(TaskReader(self.model), self.dev)
        if self.best is None or found.score > self.best.score:
            self.best = found
        return {"score": found.score} | found.scores
