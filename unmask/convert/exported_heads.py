"""Find the objectives of a recipe that a family has heads for, and check each against what the family computes."""

from __future__ import annotations

from typing import Any

from unmask.convert import linear_label, recipe_facts
from unmask.convert.exported_values import parts, parts_left_out
from unmask.convert.family import Family
from unmask.convert.names import Heads
from unmask.convert.token_head import token_activation
from unmask.convert.tokenizer import check_summary
from unmask.data import FromTask
from unmask.errors import require
from unmask.predict import Choice, Label, Replaced, Span, Tags, Tokens
from unmask.recipe import MAIN, Recipe
from unmask.system import SENTENCE, asked_losses, objectives
from unmask.tasks import Classify, Number


def exported_heads(family: Family, recipe: Recipe, backbone: Any) -> tuple[Heads, tuple[str, ...]]:
    """The heads by name, each checked against what the family has; and the heads and parts that it has no place for."""
    found: dict[str, Any] = objectives(recipe)
    parts_out = parts_left_out(recipe, family.values)
    read = asked_losses(recipe, recipe.all_tracks()[MAIN])  # a finished model reads with the main track
    out = tuple(
        name
        for name, part in found.items()
        if name not in read
        or not _has_place(family, name, part, recipe)
        or (parts_out and recipe_facts.reads_decoder(part))
    )
    kept = {name: part for name, part in found.items() if name not in out}
    heads = _sorted(kept, recipe)
    if heads.tokens:
        _check_predicted_token(family, recipe)
        _check_tokens(family, kept[heads.tokens], backbone)
    for part in kept.values():
        if isinstance(part, Label):
            _check_task(family, recipe, part)
            _check_once(family, part)
        if isinstance(part, Label | Choice):
            _check_pooled(family, part, backbone)
            check_summary(family, recipe.layout)
    if heads.replaced:
        _check_replaced(family, backbone)
    for name in filter(None, (heads.tags, heads.span)):
        _check_token_norm(family, name, kept[name], backbone.epsilon)
    if heads.tags:
        require(
            not kept[heads.tags].crf,
            "Hugging Face's {kind} has no CRF: adapt with crf=false, or use the run folder as it is",
            kind=family.model_type,
        )
        require(
            kept[heads.tags].dense is None,
            "Hugging Face's {kind} has one layer for tags, and this head has a dense layer before it (predict.{name}.dense): use the run "
            "folder as it is",
            kind=family.model_type,
            name=heads.tags,
        )
    if heads.span:
        require(
            kept[heads.span].pool == "summary",
            "Hugging Face's {kind} reads from one token that there is no answer, got predict.{name}.pool={pool}: use the run folder as it is",
            kind=family.model_type,
            name=heads.span,
            pool=kept[heads.span].pool,
        )
    return heads, out + parts_out


def _sorted(kept: dict[str, Any], recipe: Recipe) -> Heads:
    """The heads sorted by what they predict. A model has at most one head of each kind."""
    tokens = [name for name, part in kept.items() if isinstance(part, Tokens)]
    labels = [name for name, part in kept.items() if isinstance(part, Label) and name != SENTENCE]
    replaced = [name for name, part in kept.items() if isinstance(part, Replaced)]
    others = tokens + replaced + [name for name in kept if name == SENTENCE]
    require(
        max(len(tokens), len(labels), len(replaced)) <= 1 and not (labels and others) and not (tokens and replaced),
        (
            "a Hugging Face model predicts one thing, or tokens and a sentence task, got {kept} "
            "(arrange={arrange_kind}): leave one out"
        ),
        kept=", ".join(kept),
        arrange_kind=type(recipe.arrange).__name__,
    )
    return Heads(
        tokens=next(iter(tokens), None),
        sentence=SENTENCE if SENTENCE in kept else None,
        label=next(iter(labels), None),
        replaced=next(iter(replaced), None),
        tags=next((name for name, part in kept.items() if isinstance(part, Tags)), None),
        span=next((name for name, part in kept.items() if isinstance(part, Span)), None),
        choice=next((name for name, part in kept.items() if isinstance(part, Choice)), None),
        tied=all(kept[name].tied for name in tokens),
    )


def _has_place(family: Family, name: str, part: Any, recipe: Recipe) -> bool:
    """Whether the family has a head that predicts the same thing."""
    found = objectives(recipe).values()
    tokens = any(isinstance(other, Tokens) for other in found)
    if name == SENTENCE:
        whole = ("sentence",) in family.architectures or tokens
        return bool(family.names.sentence) and whole and type(recipe.arrange) is family.sentence_task
    if isinstance(part, Tokens):  # an adapted model may also predict tokens, but only the head of its task is exported
        heads = (Label, Choice) if ("choice",) in family.architectures else (Label,)
        return not (isinstance(recipe.arrange, FromTask) and any(isinstance(other, heads) for other in found))
    for kind, head in (("tags", Tags), ("span", Span), ("choice", Choice)):
        if isinstance(part, head):
            return (kind,) in family.architectures
    return isinstance(part, Label) or (isinstance(part, Replaced) and bool(family.names.replaced))


def _check_predicted_token(family: Family, recipe: Recipe) -> None:
    """Refuse a head that was trained to predict a token at another position than Hugging Face's head does."""
    where = {"own": "at its own place", "next": "that follows each place", "written": "by token with a decoder"}[
        family.predicts
    ]
    wanted = recipe_facts.HIDE_FOR[family.predicts]
    hides = [(name, part) for name, part in parts(recipe) if name.endswith("hide")]
    for name, part in [pair for pair in hides if "targets:tokens" in pair[1].gives] or hides:
        require(
            recipe_facts.predicted_token(part) == family.predicts,
            (
                "Hugging Face's {model_type} predicts the token {where}, got {name}={part_kind}: train with "
                "{name}={wanted}, or use the run folder as it is"
            ),
            model_type=family.model_type,
            where=where,
            name=name,
            part_kind=type(part).__name__,
            wanted=wanted,
        )


def _check_tokens(family: Family, part: Tokens, backbone: Any) -> None:
    kind = family.model_type
    further = recipe_facts.further_target(part)
    require(
        further is None and part.layer is None,
        (
            "Hugging Face's {kind} predicts tokens from its last layer, and no further than the next, got "
            "{further}: use the run folder as it is"
        ),
        kind=kind,
        further=further or f"layer={part.layer}",
    )
    transform, bias = family.transform is not None, "bias" in family.names.tokens
    way = "with a transform and a bias" if transform else f"without a transform and {'with a' if bias else 'a'} bias"
    require(
        part.transform == transform and (bias or not part.bias),
        (
            "Hugging Face's {kind} predicts tokens {way}, got transform={transform} and bias={bias}: train with a "
            "head such as that of the {kind} recipe"
        ),
        kind=kind,
        way=way,
        transform=part.transform,
        bias=part.bias,
    )
    if part.transform:
        _check_transform_bias(family, part)
        activation = token_activation(family, backbone)
        require(
            (part.activation, part.epsilon) == (activation, backbone.epsilon),
            (
                "Hugging Face's {kind} predicts tokens with activation={activation!r} and epsilon={epsilon}, got "
                "{activation_2!r} and {epsilon_2}: train with those"
            ),
            kind=kind,
            activation=activation,
            epsilon=backbone.epsilon,
            activation_2=part.activation,
            epsilon_2=part.epsilon,
        )


def _check_transform_bias(family: Family, part: Tokens) -> None:
    wanted = "dense.bias" in family.names.tokens
    require(
        part.transform_bias == wanted,
        (
            "Hugging Face's {kind} predicts tokens with transform_bias={wanted}, got {found}: train with "
            "predict.tokens.transform_bias={wanted}"
        ),
        kind=family.model_type,
        wanted=str(wanted).lower(),
        found=str(part.transform_bias).lower(),
    )


def _check_task(family: Family, recipe: Recipe, part: Label) -> None:
    if isinstance(recipe.task, Number):
        moved = (recipe.task.mean or 0.0, recipe.task.deviation or 1.0) != (0.0, 1.0)
        require(
            not moved or "out.bias" in family.names.label,
            "Hugging Face's {kind} predicts a number without a bias, and so cannot add the mean of the training examples: adapt "
            "with --set mean=0.0 --set deviation=1.0",
            kind=family.model_type,
        )
    if not isinstance(recipe.task, Classify | Number):
        return
    orders, named = recipe.task.orders, len(recipe.task.labels) or 1
    require(
        orders == "one",
        "Hugging Face's {model_type} reads a pair in one order, got orders={orders!r}: adapt with orders=one",
        model_type=family.model_type,
        orders=orders,
    )
    require(
        named == part.classes,
        "the head has classes={classes}, and the task {named} labels: adapt it again",
        classes=part.classes,
        named=named,
    )


def _check_once(family: Family, part: Label) -> None:
    require(
        part.readings == "sum",
        "Hugging Face's {kind} reads a text once, and does not read a long one in windows, got readings={readings}: adapt with "
        "long=cut",
        kind=family.model_type,
        readings=part.readings,
    )


def _check_pooled(family: Family, part: Label | Choice, backbone: Any) -> None:
    """Refuse a head that reads another vector than Hugging Face's, or has another layer before its output."""
    require(
        part.pool in (family.pools or ("summary",)),
        "Hugging Face's {kind} reads a {what} from one token, got pool={pool!r}: adapt with pool=summary",
        kind=family.model_type,
        what=type(part).__name__.lower(),
        pool=part.pool,
    )
    if family.pooler_norm or not linear_label.fits(part, family.pooler, backbone.width):
        _check_pooler(family, part)
        _check_pooler_norm(family, part, backbone.epsilon)


def _check_pooler(family: Family, part: Label | Choice) -> None:
    kind, activation, what = family.model_type, family.pooler, type(part).__name__.lower()
    pooler = activation is not None
    require(
        part.pooler == pooler and (pooler or not part.bias),
        (
            "Hugging Face's {kind} reads a {what} {pooler}, got pooler={pooler_2} and bias={bias}: adapt again with "
            "--set pooler={lower}"
        ),
        kind=kind,
        what=what,
        pooler="with a pooler" if pooler else "without a pooler or a bias",
        pooler_2=part.pooler,
        bias=part.bias,
        lower=str(pooler).lower(),
    )
    require(
        not pooler or part.activation == activation,
        (
            "Hugging Face's {kind} reads a {what} with activation={activation!r}, got {activation_2!r}: adapt the "
            "model again with 'unmask adapt ... --set activation={activation}'"
        ),
        kind=kind,
        what=what,
        activation=activation,
        activation_2=part.activation,
    )


def _check_pooler_norm(family: Family, part: Label | Choice, epsilon: float) -> None:
    wanted = (False, epsilon) if family.pooler_norm else (True, None)
    require(
        (part.pooler_bias, part.pooler_norm) == wanted,
        (
            "Hugging Face's {kind} reads a {what} with pooler_bias={bias} and pooler_norm={norm}{why}, got {found_bias} and "
            "{found_norm}: adapt a run whose recipe has adapt.pooler_bias={bias} and adapt.pooler_norm={norm}"
        ),
        kind=family.model_type,
        what=type(part).__name__.lower(),
        bias=str(wanted[0]).lower(),
        norm=str(wanted[1]).lower(),
        why=" (the epsilon of its norms)" if family.pooler_norm else "",
        found_bias=str(part.pooler_bias).lower(),
        found_norm=str(part.pooler_norm).lower(),
    )


def _check_token_norm(family: Family, name: str, part: Tags | Span, epsilon: float) -> None:
    wanted = epsilon if family.pooler_norm else None
    require(
        part.norm == wanted,
        (
            "Hugging Face's {kind} has {layers} before the output for each token (predict.{name}.norm={wanted}), got {found}: adapt "
            "again, from a run whose recipe has adapt.pooler_norm={wanted} (models of older versions have no such layers)"
        ),
        kind=family.model_type,
        layers="a dense layer and a norm" if wanted else "no layer",
        name=name,
        wanted=str(wanted).lower(),
        found=str(part.norm).lower(),
    )


def _check_replaced(family: Family, backbone: Any) -> None:
    require(
        backbone.activation == "gelu",
        (
            "Hugging Face's {model_type} finds replaced tokens with the activation of the network, here with gelu, "
            "got {activation!r}: train with system.backbone.activation=gelu"
        ),
        model_type=family.model_type,
        activation=backbone.activation,
    )
