"""How the recipe of a pretrained model becomes that of a task: what tasks share."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypedDict

from unmask.axes import Curve, Hide, Objective, Pretrained, See
from unmask.data import FromTask
from unmask.errors import require
from unmask.hide import Next, Nothing
from unmask.recipe import Recipe, Stage
from unmask.system import Single
from unmask.tasks._training import Training
from unmask.train import AdamW

SCORES = "token scores"


class Dense(TypedDict):
    """The layer before the output of a head."""

    pooler: bool  # whether there is one
    activation: Literal["tanh", "gelu"]  # of that layer


def turned(
    base: Pretrained, task: Training, *, hide: Hide, see: See, predict: dict[str, Any],
    weights: dict[str, Any] | None = None, segments: tuple[int, ...] = (),
) -> Recipe:  # fmt: skip
    """The recipe of a pretrained model with the parts that a task needs. `task`: every value decided.

    `weights`: of the losses, 1 where none is given."""
    plan, usual = task.hyperparameters(base.recipe), base.recipe.adapt
    check_length(base, plan.length)
    kept = any(_scores_tokens(part) for part in predict.values())
    found: Recipe = base.recipe.replace(
        arrange=FromTask(),
        hide=hide,
        see=see,
        system=Single(backbone=base.recipe.system.backbone),
        predict=predict,
        optimise=AdamW(rate=plan.rate, decay=plan.decay, warmup=plan.warmup, layer_decay=plan.layer_decay),
        schedule=(Stage(length=plan.length, weights=weights or {}),),
        reads=plan.length,
        segments=segments,
        tracks={},
        writes_with=None,
        adapt=usual if kept else dataclasses.replace(usual, language=0.0),  # what is given up cannot be kept later
        task=task,
    )
    return found


def check_length(base: Pretrained, length: int) -> None:
    """Refuse to read a text at positions that the model was never trained on."""
    require(
        length <= base.length,
        f"length={length} is longer than {base.folder} reads: it was trained with at most {base.length:,} tokens; leave length "
        f"out, or pretrain with longer rows (--set schedule.*.length={length})",
    )


def with_head(base: Pretrained, task: Training, name: str, head: Objective, language: float | Curve) -> Recipe:
    """The recipe for a new head under this name; with a weight of language, the next token is predicted too."""
    see = reading(base)
    if language == 0:
        return turned(base, task, hide=Nothing(), see=see, predict={name: head})
    kept = {key: part for key, part in base.recipe.predict.items() if _scores_tokens(part)}
    require(
        bool(kept) and "future hidden" in base.recipe.see.gives,
        f"language={language} goes on predicting the next token, and {base.folder} does not predict it: set language=0, "
        "or adapt a model that reads from left to right",
    )
    weights = dict.fromkeys(kept, language)
    return turned(base, task, hide=Next(), see=see, predict={name: head} | kept, weights=weights)


def dense(base: Pretrained, pooler: bool | None, activation: Any, *, usual: bool) -> Dense:
    """Whether there is a dense layer before the output, and its activation: as the task says, or else the recipe.

    `usual`: whether the task reads the model where recipes have such a layer."""
    there = (usual and base.recipe.adapt.pooler) if pooler is None else pooler
    require(
        there or activation is None,
        f"activation={activation} is that of a dense layer before the output, and there is none: set pooler=true too, or "
        "leave activation out",
    )
    return {"pooler": there, "activation": activation or (base.recipe.adapt.activation if there else "tanh")}


def weight_of_language(base: Pretrained, language: float | Curve | None) -> Any:
    """As the task says, or else the recipe."""
    return base.recipe.adapt.language if language is None else language


def reading(base: Pretrained) -> Any:
    """The view that a finished model reads with."""
    return base.recipe.see.reading


def reads_everything(base: Pretrained) -> bool:
    return "both sides" in reading(base).gives


def token_objective(base: Pretrained) -> tuple[str, Any] | None:
    """The objective that scores tokens, and its name, if there is one."""
    return next(((name, part) for name, part in base.recipe.predict.items() if _scores_tokens(part)), None)


def _scores_tokens(part: Any) -> bool:
    return SCORES in part.gives
