"""Turn: the recipe of a pretrained model becomes that of a task, and its weights go over."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.data import Given
from unmask.errors import require
from unmask.hide import Next, Nothing
from unmask.infer.model import Model
from unmask.predict import Adaptive, Tokens
from unmask.recipe import Part, Recipe, Stage
from unmask.system import SENTENCE, Single
from unmask.tasks._training import Training
from unmask.train import AdamW


def turned(
    base: Model,
    task: Training,
    *,
    hide: Part,
    see: Part,
    predict: dict[str, Part],
    weights: dict[str, Any] | None = None,
) -> Recipe:
    """The recipe of a pretrained model with the parts that a task needs; what the task leaves open is as the paper has it.

    `weights`: of the losses, 1 where none is given."""
    require(
        task.length is None or task.length <= base.length,
        f"length={task.length} is longer than {base.folder} reads, {base.length} tokens: set a shorter one, or leave it out",
    )
    usual, backbone = base.recipe.adapt, base.recipe.system.backbone  # type: ignore[attr-defined]
    rate = task.rate or usual.rate * 768 / backbone.width
    warmup = usual.warmup if task.warmup is None else task.warmup
    kept = any(_predicts_next(part) for part in predict.values())
    return base.recipe.replace(
        arrange=Given(),
        hide=hide,
        see=see,
        system=Single(backbone=backbone),
        predict=predict,
        optimise=AdamW(rate=rate, decay=task.decay, warmup=warmup),
        schedule=(Stage(length=task.length or base.length, weights=weights or {}),),
        adapt=usual if kept else dataclasses.replace(usual, language=0.0),  # what is given up cannot be kept later
    )


def answering(base: Model, task: Any, name: str, head: Part) -> Recipe:
    """The recipe for a head that answers, under this name; with a weight of language, the next token is predicted too."""
    weight = base.recipe.adapt.language if task.language is None else task.language
    see = base.recipe.see.serving  # type: ignore[attr-defined]
    if weight == 0:
        return turned(base, task, hide=Nothing(), see=see, predict={name: head})
    kept = {key: part for key, part in base.recipe.predict.items() if _predicts_next(part)}
    require(
        bool(kept) and isinstance(base.recipe.hide, Next),
        f"language={weight} goes on predicting the next token, and {base.folder} does not predict it: set language=0, "
        "or adapt a model that reads from left to right",
    )
    return turned(base, task, hide=Next(), see=see, predict={name: head} | kept, weights=dict.fromkeys(kept, weight))


def activation(base: Model, task: Any, pooler: bool) -> Any:
    """That of the layer before the output: as the task says or, where there is such a layer, the recipe."""
    return task.activation or (base.recipe.adapt.activation if pooler else "tanh")


def _predicts_next(part: Part) -> bool:
    return isinstance(part, Adaptive) or (isinstance(part, Tokens) and part.ahead == 1 and part.layer is None)


def inherit(system: Any, base: Model, name: str) -> None:
    """Take over the backbone, the objectives that are kept, and the pooler of a sentence task for the head `name`."""
    system.backbone.load_state_dict(base.system.backbone.state_dict())
    for kept in system.predict.keys() - {name}:
        system.predict[kept].load_state_dict(base.system.predict[kept].state_dict())
    before = base.system.predict[SENTENCE] if SENTENCE in base.system.predict else None
    head = system.predict[name]
    if before is not None and head.dense is not None and before.dense is not None:
        head.dense.load_state_dict(before.dense.state_dict())
