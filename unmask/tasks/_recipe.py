"""Turn the recipe of a pretrained model into the recipe of a task: the functions that all tasks share."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypedDict

from unmask.axes import Curve, Hide, Objective, Pretrained, See, gives_of
from unmask.data import FromTask
from unmask.errors import require
from unmask.hide import Next, Nothing, Rewrite
from unmask.predict import Choice, Label
from unmask.recipe import Recipe, Stage
from unmask.system import Single
from unmask.tasks._training import Training
from unmask.train import AdamW

SCORES = "token scores"


class Dense(TypedDict):
    """The dense layer before the output of a head."""

    pooler: bool  # whether there is such a layer
    activation: Literal["tanh", "gelu"]  # the activation of that layer
    pooler_bias: bool  # whether that layer has a bias
    pooler_norm: float | None  # epsilon of the norm after that layer; None: there is no norm


def turned(
    base: Pretrained, task: Training, *, hide: Hide, see: See, predict: dict[str, Any],
    weights: dict[str, Any] | None = None, segments: tuple[int, ...] = (),
) -> Recipe:  # fmt: skip
    """The recipe of a pretrained model with the parts that a task needs. All values of `task` are set.

    `weights`: the weight of each loss; a loss that is not named has the weight 1."""
    plan, usual = task.hyperparameters(base.recipe), base.recipe.adapt
    check_length(base, plan.length)
    kept = any(_scores_tokens(part) for part in predict.values())
    found: Recipe = base.recipe.replace(
        arrange=FromTask(),
        hide=hide,
        see=see,
        system=Single(backbone=kept_backbone(base, hide)),
        predict=predict,
        optimise=AdamW(rate=plan.rate, decay=plan.decay, warmup=plan.warmup, layer_decay=plan.layer_decay),
        schedule=(Stage(length=plan.length, weights=weights or {}),),
        reads=plan.length,
        segments=segments,
        tracks={},
        writes_with=None,
        # without an objective that scores tokens, a later adaptation cannot predict the next token either
        adapt=usual if kept else dataclasses.replace(usual, language=0.0),
        task=task,
    )
    return found


def kept_backbone(base: Pretrained, hide: Hide) -> Any:
    """The backbone that a task trains: that of the model. If no decoder writes, it may be the encoder alone (CoVe)."""
    backbone: Any = base.recipe.system.backbone
    alone = "kept encoder" in backbone.gives and "decoder rows" not in gives_of(hide)
    return backbone.encoder if alone else backbone


def check_length(base: Pretrained, length: int) -> None:
    """Refuse a length with positions that the model was never trained on."""
    require(
        length <= base.length,
        (
            "length={length} is too long for {folder}, which was trained with at most {length_2:,} tokens: leave "
            "length out, or pretrain with longer rows (--set schedule.*.length={length})"
        ),
        length=length,
        folder=base.folder,
        length_2=base.length,
    )


def with_head(base: Pretrained, task: Training, name: str, head: Objective, language: float | Curve) -> Recipe:
    """The recipe with a new head called `name`. If the weight `language` is not 0, the next token is predicted too."""
    see = reading(base)
    if language == 0:
        gives = gives_of(base.recipe.system.backbone)
        again = head.reads_decoder and "decoder" in gives and "kept encoder" not in gives
        return turned(base, task, hide=Rewrite() if again else Nothing(), see=see, predict={name: head})
    kept = {key: part for key, part in base.recipe.predict.items() if _scores_tokens(part)}
    require(
        bool(kept) and "future hidden" in base.recipe.see.gives,
        (
            "language={language} needs a model that predicts the next token, but {folder} does not predict it: set "
            "language=0, or adapt a model that reads from left to right"
        ),
        language=language,
        folder=base.folder,
    )
    weights = dict.fromkeys(kept, language)
    return turned(base, task, hide=Next(), see=see, predict={name: head} | kept, weights=weights)


def dense(base: Pretrained, pooler: bool | None, activation: Any, *, usual: bool) -> Dense:
    """The dense layer before the output: values of the task, otherwise of the recipe.

    `usual`: whether the task reads the vector that such a layer usually reads."""
    has_layer = (usual and base.recipe.adapt.pooler) if pooler is None else pooler
    require(
        has_layer or activation is None,
        (
            "activation={activation} sets the activation of the dense layer before the output, but there is no "
            "such layer: set pooler=true too, or leave activation out"
        ),
        activation=activation,
    )
    recipe = base.recipe.adapt
    return {
        "pooler": has_layer,
        "activation": activation or (recipe.activation if has_layer else "tanh"),
        "pooler_bias": recipe.pooler_bias or not has_layer,
        "pooler_norm": recipe.pooler_norm if has_layer else None,
    }


Pool = Literal["summary", "mean", "max", "concat"]


def label_head(
    base: Pretrained, *, classes: int, pool: Pool | None, dropout: float, pooler: bool | None, activation: Any,
    answer: Literal["class", "classes", "number"] = "class", windows: bool = False,
    weights: tuple[float, ...] = (),
) -> Label:  # fmt: skip
    """The head of a model that answers from one vector. `windows`: the vector is the mean over the windows of a text.

    `pool`: none is the vector of the summary token, or the mean of all vectors if none of them has read the whole text."""
    all_seen = reads_everything(base)
    pool = pool or usual_pool(base)
    layer = dense(base, pooler, activation, usual=all_seen and pool == "summary")
    return Label(
        classes=classes, pool=pool, dropout=dropout, bias=all_seen, **layer, answer=answer,
        readings="mean" if windows else "sum", weights=weights,
    )  # fmt: skip


def usual_pool(base: Pretrained) -> Literal["summary", "mean"]:
    """The vector that stands for a text: that of the summary token, or the mean if no vector has read the whole text."""
    return "mean" if "no summary" in gives_of(base.recipe.system.backbone) else "summary"


def choice_head(base: Pretrained, *, dropout: float, pooler: bool | None, activation: Any) -> Choice:
    """The head of a model that scores several texts against each other."""
    pool = usual_pool(base)
    layer = dense(base, pooler, activation, usual=reads_everything(base) and pool == "summary")
    return Choice(pool=pool, **layer, dropout=dropout)


def token_norm(base: Pretrained) -> float | None:
    """Epsilon of the norm before an output for each token: the recipe's, if it has a dense layer with a norm before every output."""
    usual = base.recipe.adapt
    return usual.pooler_norm if usual.pooler else None


def weight_of_language(base: Pretrained, language: float | Curve | None) -> Any:
    """The weight that the task sets, otherwise that of the recipe."""
    return base.recipe.adapt.language if language is None else language


def reading(base: Pretrained) -> Any:
    """The `see` part that a trained model reads with."""
    return base.recipe.see.reading


def reads_everything(base: Pretrained) -> bool:
    return "both sides" in reading(base).gives


def token_objective(base: Pretrained) -> tuple[str, Any] | None:
    """The name of the objective that scores tokens, and the objective; None if there is none."""
    return next(((name, part) for name, part in base.recipe.predict.items() if _scores_tokens(part)), None)


def _scores_tokens(part: Any) -> bool:
    return SCORES in part.gives
