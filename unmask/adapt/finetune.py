"""Fine-tune: all weights of a pretrained model, and a new head, on a task's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from unmask import chance, metrics, run
from unmask.adapt.epochs import of_dev, rounds
from unmask.adapt.task_recipe import answering, inherit, pooler
from unmask.data.examples import rows_of
from unmask.errors import require
from unmask.infer.classify import check_texts, probabilities, readings
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.recipe import Recipe
from unmask.tasks.classify import Classify, Example, label_names, label_numbers
from unmask.train import Trainer

LOOKED_AT: Final = 256  # training examples that are predicted after training if there is no dev set


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
    """Adapt a model, yielding records (see `rounds`). With `dev`, the weights of the best epoch are kept.

    `fresh` starts from random weights of the same network: the untrained control of a comparison.
    """
    task = task or Classify()
    names = label_names(examples)
    recipe = adapted_recipe(base, task, names, texts=1 if examples[0].text.b is None else 2)
    label, length = recipe.predict["label"], recipe.schedule[0].length
    out = Path(out)
    run.claim(out, overwrite=overwrite, base=base.folder)
    for part in (examples, dev):
        check_texts(
            label, [e.text for e in part], "the first training example", [e.where or repr(e.text.a) for e in part]
        )
    numbers, dev_numbers = label_numbers(examples, names, "train"), label_numbers(dev, names, "dev")
    rows, notes = rows_of(readings(label, [e.text for e in examples]), numbers, base.tokenizer, recipe.layout, length)
    if dev:
        notes.update(of_dev(rows_of([e.text for e in dev], dev_numbers, base.tokenizer, recipe.layout, length)[1]))
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)
    if not fresh:
        inherit(system, base, "label")
    model = Model(system, recipe, base.tokenizer, out, base.device)

    best: tuple[float, list[int]] = (-1.0, [])  # accuracy on dev, and what was predicted there

    def validate(trainer: Trainer) -> dict[str, float]:
        nonlocal best
        with trainer.machine.autocast():
            predicted = probabilities(model, [example.text for example in dev]).argmax(1).tolist()
        table = metrics.confusion(dev_numbers, predicted, len(names))
        accuracy = metrics.accuracy(table)
        best = max(best, (accuracy, predicted), key=lambda pair: pair[0])
        return {"score": accuracy, "accuracy": accuracy, "macro_f1": metrics.macro_f1(table),
                "labels": len(set(predicted))}  # fmt: skip

    def remarks() -> list[str]:
        if dev:
            return _one_label(best[1], dev_numbers, names, "dev")
        some = probabilities(model, [example.text for example in examples[:LOOKED_AT]]).argmax(1).tolist()
        return _one_label(some, numbers, names, "training")

    start = {"labels": list(names), "baseline": metrics.majority(dev_numbers or numbers, names),
             "baseline_of": "dev" if dev else "train"}  # fmt: skip
    yield from rounds(model, rows, task.hyperparameters(base.recipe), notes=notes, seed=seed, start=start,
                      validate=validate if dev else None, stop=stop, remarks=remarks)  # fmt: skip


def _one_label(predicted: Sequence[int], truth: Sequence[int], names: Sequence[str], where: str) -> list[str]:
    """What to say if a model has learnt nothing but to give one answer."""
    if len(set(predicted)) != 1 or len(set(truth)) == 1:
        return []
    return [
        f"one label is predicted for all {len(predicted):,} {where} texts: {names[predicted[0]]!r}; the model has not learnt to "
        "tell labels apart: train longer (--set epochs=...), set another rate, or adapt a model with more pretraining"
    ]


def adapted_recipe(base: Model, task: Classify, names: Sequence[str], texts: Literal[1, 2] | None = None) -> Recipe:
    """The recipe of a pretrained model, turned to the task: the label predicted, and the next token where it is kept.

    `texts`: of an example; none: not known."""
    reads_all = "both sides" in base.recipe.see.reading.gives
    head = Label(classes=len(names), names=tuple(names), pool=task.pool, dropout=task.dropout, bias=reads_all,
                 orders=task.orders, texts=texts, **pooler(base, task, usual=reads_all and task.pool == "summary"))  # fmt: skip
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
