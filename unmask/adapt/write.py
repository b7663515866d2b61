"""Adapt a masked model to writing: a part of the target is hidden, and its words are written one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask.adapt.epochs import claim, of_dev, rounds
from unmask.adapt.task_recipe import turned
from unmask.data.examples import Text, batch_of, rows_of
from unmask.errors import require
from unmask.hide import Masked, Second
from unmask.infer.model import Model
from unmask.predict import Tokens
from unmask.recipe import MAIN, Recipe, Track
from unmask.see import Prefix
from unmask.tasks.write import Write
from unmask.train import Trainer

ROWS = 32  # of the dev set in one pass


def teach_writing(
    base: Model,
    pairs: Sequence[Text],
    out: str | Path,
    *,
    dev: Sequence[Text] = (),
    task: Write | None = None,
    seed: int = 0,
    fresh: bool = False,
    overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:
    """Adapt a model, yielding records. With `dev`, the weights with the lowest loss there are kept.

    `fresh` starts from random weights of the same network: the untrained control of a comparison.
    """
    task = task or Write()
    recipe = writing_recipe(base, task)
    out = Path(out)
    claim(base, out, overwrite)

    def rows_from(texts: Sequence[Text]) -> Any:
        return rows_of(texts, [0] * len(texts), base.tokenizer, recipe.layout, recipe.schedule[0].length)

    rows, notes = rows_from(pairs)
    held, cut = rows_from(dev) if dev else (None, Counter())
    notes.update(of_dev(cut))
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)
    if not fresh:
        system.backbone.load_state_dict(base.system.backbone.state_dict())
        system.predict["tokens"].load_state_dict(base.head(Tokens, "write").state_dict())
    model = Model(system, recipe, base.tokenizer, out, base.device)

    def validate(trainer: Trainer) -> dict[str, float]:
        total = count = 0.0
        for begin in range(0, len(held), ROWS):
            batch = batch_of(held, np.arange(begin, min(begin + ROWS, len(held)))).to(base.device)
            with trainer.machine.autocast():
                losses, _ = system.step(system.hide(batch)[0])
            total, count = total + float(losses["tokens"].total), count + float(losses["tokens"].count)
        return {"score": -total / max(1.0, count), "loss": total / max(1.0, count)}

    yield from rounds(
        model,
        rows,
        task.hyperparameters(base.recipe),
        notes=notes,
        seed=seed,
        start={},
        validate=validate if dev else None,
        stop=stop,
    )


def writing_recipe(base: Model, task: Write) -> Recipe:
    """The recipe of a pretrained model, turned to writing: the target hidden in part and seen from left to right."""
    tokens = next((part for part in base.recipe.predict.values() if isinstance(part, Tokens)), None)
    require(tokens is not None, f"{base.folder} cannot be adapted to writing: it does not predict tokens")
    require(
        base.tokenizer.vocabulary.mask is not None,
        f"{base.folder} cannot be adapted to writing, which hides parts of the target: its tokenizer has no [MASK]; one that "
        "reads from left to right goes on with any text as it is: 'unmask generate'",
    )
    hide, plan = Masked(units=Second(), budget=task.hidden), task.hyperparameters(base.recipe)
    made = turned(base, plan, hide=hide, see=Prefix(), predict={"tokens": tokens})  # type: ignore[dict-item]
    return _with_tracks_of(base.recipe, made) if "prefix" in base.recipe.writes else made


def _with_tracks_of(base: Recipe, made: Recipe) -> Recipe:
    """The recipe with the view and the segments that the base writes with; it reads as the base reads."""
    own, name = base.all_tracks()[base.writing], base.writing
    if name == MAIN:
        return made.replace(see=own.see, segments=own.segments)
    track = Track(share=1.0, see=own.see, segments=own.segments)
    return made.replace(see=base.see, segments=base.segments, tracks={name: track}, writes_with=name)
