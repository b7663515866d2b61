"""Fine-tune: all weights of a pretrained model, and a new head, on a task's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask import chance, metrics
from unmask.adapt.rounds import claim, of_dev, rounds
from unmask.adapt.turn import answering, inherit, pooler
from unmask.data.given import rows_of
from unmask.errors import require
from unmask.infer.classify import probabilities, readings
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.recipe import Recipe
from unmask.tasks.classify import Classify, Example, label_names, label_numbers
from unmask.train import Trainer


def finetune(
    base: Model,
    examples: Sequence[Example],
    out: str | Path,
    *,
    dev: Sequence[Example] = (),
    task: Classify | None = None,
    seed: int = 0,
    fresh: bool = False,
    overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:
    """Adapt a model, yielding records. With `dev`, the weights of the best epoch are kept.

    `fresh` starts from random weights of the same network: the untrained control of a comparison.
    """
    task = task or Classify()
    names = label_names(examples)
    recipe = adapted_recipe(base, task, names)
    out = Path(out)
    claim(base, out, overwrite)
    rows, notes = rows_of(readings(recipe.predict["label"], [e.text for e in examples]), label_numbers(examples, names, "train"), base.tokenizer,
                          recipe.layout, recipe.schedule[0].length)  # fmt: skip
    dev_numbers = label_numbers(dev, names, "dev") if dev else []
    if dev:
        notes.update(of_dev(rows_of([e.text for e in dev], dev_numbers, base.tokenizer, recipe.layout, base.length)[1]))
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)  # type: ignore[attr-defined]
    if not fresh:
        inherit(system, base, "label")
    model = Model(system, recipe, base.tokenizer, out, base.device)

    def validate(trainer: Trainer) -> dict[str, float]:
        with trainer.machine.autocast():
            predicted = probabilities(model, [example.text for example in dev]).argmax(1).tolist()
        table = metrics.confusion(dev_numbers, predicted, len(names))
        return {"score": metrics.accuracy(table), "accuracy": metrics.accuracy(table), "f1": metrics.macro_f1(table)}

    yield from rounds(model, rows, task.plan(base.recipe), notes=notes, seed=seed, start={"labels": list(names)},
                      validate=validate if dev else None, stop=stop)  # fmt: skip


def adapted_recipe(base: Model, task: Classify, names: Sequence[str]) -> Recipe:
    """The recipe of a pretrained model, turned to the task: the label predicted, and the next token where it is kept."""
    reads_all = base.recipe.see.serving.pattern == "everything"  # type: ignore[attr-defined]
    head = Label(classes=len(names), names=tuple(names), pool=task.pool, dropout=task.dropout, bias=reads_all,
                 orders=task.orders, **pooler(base, task, usual=reads_all and task.pool == "summary"))  # fmt: skip
    return answering(base, task, "label", head)


def few(examples: Sequence[Example], per_label: int, seed: int) -> list[Example]:
    """So many examples of each label, drawn at random."""
    chosen: list[Example] = []
    rng = chance.generator(seed, chance.purpose("few labels"))
    for name in label_names(examples):
        mine = [e for e in examples if e.label == name]
        require(len(mine) >= per_label, f"label {name!r} has {len(mine)} examples, {per_label} were asked for")
        chosen += [mine[i] for i in sorted(rng.choice(len(mine), per_label, replace=False).tolist())]
    return chosen
