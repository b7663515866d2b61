"""Turn: the recipe of a pretrained model becomes that of a task, and its weights go over."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.axes import PartLike
from unmask.data import FromTask
from unmask.errors import require
from unmask.hide import Next, Nothing
from unmask.infer.model import Model
from unmask.predict import Adaptive, Tokens
from unmask.recipe import Recipe, Stage
from unmask.system import SENTENCE, Single
from unmask.tasks._training import Hyperparameters
from unmask.train import AdamW


def turned(
    base: Model,
    plan: Hyperparameters,
    *,
    hide: PartLike,
    see: PartLike,
    predict: dict[str, PartLike],
    weights: dict[str, Any] | None = None,
) -> Recipe:
    """The recipe of a pretrained model with the parts that a task needs, trained as the plan says.

    `weights`: of the losses, 1 where none is given."""
    check_length(base, plan.length)
    usual, backbone = base.recipe.adapt, base.recipe.system.backbone  # type: ignore[attr-defined]
    kept = any(_predicts_next(part) for part in predict.values())
    return base.recipe.replace(
        arrange=FromTask(),
        hide=hide,
        see=see,
        system=Single(backbone=backbone),
        predict=predict,
        optimise=AdamW(rate=plan.rate, decay=plan.decay, warmup=plan.warmup, layer_decay=plan.layer_decay),
        schedule=(Stage(length=plan.length, weights=weights or {}),),
        reads=plan.length,
        adapt=usual if kept else dataclasses.replace(usual, language=0.0),  # what is given up cannot be kept later
    )


def check_length(base: Model, length: int) -> None:
    """Refuse to read a text at positions that the model was never trained on."""
    require(
        length <= base.length,
        f"length={length} is longer than {base.folder} reads: it was trained with at most {base.length:,} tokens; leave length "
        f"out, or pretrain with longer rows (--set schedule.*.length={length})",
    )


def answering(base: Model, task: Any, name: str, head: PartLike) -> Recipe:
    """The recipe for a head that answers, under this name; with a weight of language, the next token is predicted too."""
    weight = base.recipe.adapt.language if task.language is None else task.language
    see, plan = base.recipe.see.serving, task.hyperparameters(base.recipe)  # type: ignore[attr-defined]
    if weight == 0:
        return turned(base, plan, hide=Nothing(), see=see, predict={name: head})
    kept = {key: part for key, part in base.recipe.predict.items() if _predicts_next(part)}
    require(
        bool(kept) and isinstance(base.recipe.hide, Next),
        f"language={weight} goes on predicting the next token, and {base.folder} does not predict it: set language=0, "
        "or adapt a model that reads from left to right",
    )
    return turned(base, plan, hide=Next(), see=see, predict={name: head} | kept, weights=dict.fromkeys(kept, weight))


def pooler(base: Model, task: Any, *, usual: bool) -> dict[str, Any]:
    """Whether there is a dense layer before the output, and its activation: as the task says, or else the recipe.

    `usual`: whether the task reads the model where recipes have such a layer."""
    dense = (usual and base.recipe.adapt.pooler) if task.pooler is None else task.pooler
    require(
        dense or task.activation is None,
        f"activation={task.activation} is that of a dense layer before the output, and there is none: set pooler=true too, or "
        "leave activation out",
    )
    return {"pooler": dense, "activation": task.activation or (base.recipe.adapt.activation if dense else "tanh")}


def _predicts_next(part: PartLike) -> bool:
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
