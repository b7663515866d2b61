"""Fine-tune: all weights of a pretrained model, and a new head, on a task's examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask import chance, metrics
from unmask.adapt.rounds import claim, of_dev, rounds
from unmask.data import Given
from unmask.data.given import rows_of
from unmask.errors import require
from unmask.hide import Nothing
from unmask.infer.classify import probabilities
from unmask.infer.model import Model
from unmask.predict import Label
from unmask.recipe import Recipe, Stage
from unmask.system import SENTENCE, Single
from unmask.tasks.classify import Classify, Example, label_names, label_numbers
from unmask.train import AdamW, Trainer


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
    rows, notes = rows_of([e.text for e in examples], label_numbers(examples, names, "train"), base.tokenizer,
                          recipe.layout, recipe.schedule[0].length)  # fmt: skip
    dev_numbers = label_numbers(dev, names, "dev") if dev else []
    if dev:
        notes.update(of_dev(rows_of([e.text for e in dev], dev_numbers, base.tokenizer, recipe.layout, base.length)[1]))
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)  # type: ignore[attr-defined]
    if not fresh:
        _inherit(system, base)
    model = Model(system, recipe, base.tokenizer, out, base.device)

    def validate(trainer: Trainer) -> dict[str, float]:
        with trainer.machine.autocast():
            predicted = probabilities(model, [example.text for example in dev]).argmax(1).tolist()
        table = metrics.confusion(dev_numbers, predicted, len(names))
        return {"score": metrics.accuracy(table), "accuracy": metrics.accuracy(table), "f1": metrics.macro_f1(table)}

    yield from rounds(model, rows, task, notes=notes, seed=seed, start={"labels": list(names)},
                      validate=validate if dev else None, stop=stop)  # fmt: skip


def adapted_recipe(base: Model, task: Classify, names: Sequence[str]) -> Recipe:
    """The recipe of a pretrained model, turned to the task: nothing hidden, the label predicted."""
    width = int(base.recipe.system.backbone.width)  # type: ignore[attr-defined]
    reading = base.recipe.see.serving  # type: ignore[attr-defined]
    reads_all = reading.pattern == "everything"
    rate = task.rate or 5e-5 * 768 / width
    head = Label(classes=len(names), names=tuple(names), pool=task.pool, dropout=task.dropout,
                 pooler=reads_all and task.pool == "summary", activation=task.activation, bias=reads_all)  # fmt: skip
    return base.recipe.replace(
        arrange=Given(),
        hide=Nothing(),
        see=reading,
        system=Single(backbone=base.recipe.system.backbone),  # type: ignore[attr-defined]
        predict={"label": head},
        optimise=AdamW(rate=rate, decay=task.decay, warmup=task.warmup),
        schedule=(Stage(length=min(task.length or base.length, base.length)),),
    )


def _inherit(system: Any, base: Model) -> None:
    """Take over the backbone, and the pooler of a sentence task where both have one."""
    system.backbone.load_state_dict(base.system.backbone.state_dict())
    before = base.system.predict[SENTENCE] if SENTENCE in base.system.predict else None
    head = system.predict["label"]
    if before is not None and head.dense is not None and before.dense is not None:
        head.dense.load_state_dict(before.dense.state_dict())


def few(examples: Sequence[Example], per_label: int, seed: int) -> list[Example]:
    """So many examples of each label, drawn at random."""
    chosen: list[Example] = []
    rng = chance.generator(seed, chance.purpose("few labels"))
    for name in label_names(examples):
        mine = [e for e in examples if e.label == name]
        require(len(mine) >= per_label, f"label {name!r} has {len(mine)} examples, {per_label} were asked for")
        chosen += [mine[i] for i in sorted(rng.choice(len(mine), per_label, replace=False).tolist())]
    return chosen
