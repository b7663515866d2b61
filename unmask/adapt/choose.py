"""Adapt a model to choosing one of several texts: every choice is a row, the choices of an example one softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask import run
from unmask.adapt.epochs import rounds
from unmask.adapt.task_recipe import answering, inherit, pooler
from unmask.data.examples import rows_of
from unmask.errors import require
from unmask.infer.choose import KEEP, right
from unmask.infer.model import Model
from unmask.predict import Choice
from unmask.recipe import Recipe
from unmask.tasks.choose import Choose, Question
from unmask.train import Trainer


def teach_choosing(
    base: Model,
    questions: Sequence[Question],
    out: str | Path,
    *,
    dev: Sequence[Question] = (),
    task: Choose | None = None,
    seed: int = 0,
    fresh: bool = False,
    overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:
    """Adapt a model, yielding records. With `dev`, the weights of the best epoch are kept.

    `fresh` starts from random weights of the same network: the untrained control of a comparison.
    """
    task = task or Choose()
    recipe = choosing_recipe(base, task)
    out = Path(out)
    run.claim(out, overwrite=overwrite, base=base.folder)
    labels = [question.label for question in (*questions, *dev)]
    require(None not in labels, "every question to learn from needs a label")
    rows, notes = rows_of([question.readings for question in questions], labels[: len(questions)], base.tokenizer,  # type: ignore[arg-type]
                          recipe.layout, recipe.schedule[0].length, keep=KEEP)  # fmt: skip
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)
    if not fresh:
        inherit(system, base, "choice")
    model = Model(system, recipe, base.tokenizer, out, base.device)

    def validate(trainer: Trainer) -> dict[str, float]:
        with trainer.machine.autocast():
            accuracy = right(model, dev)
        return {"score": accuracy, "accuracy": accuracy}

    yield from rounds(
        model,
        rows,
        task.hyperparameters(base.recipe),
        notes=notes,
        seed=seed,
        start={"baseline": _chance(dev or questions), "baseline_of": "dev" if dev else "train"},
        validate=validate if dev else None,
        stop=stop,
    )


def _chance(questions: Sequence[Question]) -> dict[str, Any]:
    """The accuracy of choosing at random."""
    return {"label": None, "accuracy": sum(1 / len(question.choices) for question in questions) / len(questions)}


def choosing_recipe(base: Model, task: Choose) -> Recipe:
    """The recipe of a pretrained model, turned to choosing."""
    reads_all = "both sides" in base.recipe.see.reading.gives
    head = Choice(**pooler(base, task, usual=reads_all), dropout=task.dropout)
    return answering(base, task, "choice", head)
