"""Make the recipe of an imported checkpoint: the recipe of its family with the checkpoint's values, heads and tokenizer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from unmask.axes import gives_of
from unmask.backbone import Transformer
from unmask.convert import config_json, recipe_facts
from unmask.convert import tokenizer as tokenizers
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads
from unmask.data import Blocks, FromTask
from unmask.errors import require
from unmask.hide import Nothing, Rewrite
from unmask.predict import Choice, Label, Replaced, Span, Tags
from unmask.recipe import Recipe, Stage
from unmask.system import SENTENCE, GeneratorDiscriminator, Single
from unmask.system.generator_discriminator import READS
from unmask.tasks import Choose, Classify, Multi, Number, Tag
from unmask.tasks import Span as FindSpan


def heads_of(source: HFFolder) -> Heads:
    """The heads of the run. A checkpoint without a head gets one with random weights, so that pretraining can continue."""
    called = source.family.names
    if source.classes:
        return Heads(label="label")
    if source.task_head:
        return {"tags": Heads(tags="tags"), "span": Heads(span="span"), "choice": Heads(choice="choice")}[
            source.task_head
        ]
    if called.replaced and not source.has(called.tokens):
        return Heads(replaced="replaced")
    tied = bool(source.config.get("tie_word_embeddings", source.config.get("tie_weight", True)))
    return Heads(tokens="tokens", sentence=SENTENCE if source.has(called.sentence) else None, tied=tied)


def recipe_of(source: HFFolder, heads: Heads) -> Recipe:
    """The recipe of one network."""
    family = source.family
    usual: dict[str, Recipe] = {size: family.recipe.recipe(size=size) for size in family.recipe.SIZES}
    backbone = family.read_network(family, source.config, backbone_of(usual["base"]))
    # The size sets the learning rate and the batch size, so the size with the nearest number of weights is used.
    size = min(usual, key=lambda name: abs(math.log(_weights(backbone_of(usual[name])) / _weights(backbone))))
    base = usual[size]
    recipe = base.replace(
        tokenizer=tokenizers.kind_of(source.tokenizer),
        layout=_layout(source, heads, base.layout),
        system=Single(backbone=backbone),
        reads=backbone.length if source.longest is None else int(min(source.longest, backbone.length)),
    )
    if heads.label:
        return _classifying(recipe, source, backbone)
    if source.task_head:
        return _of_task(recipe, source.task_head, *_other_task(source, backbone), backbone)
    return _pretrained(recipe, source, backbone, heads)


def backbone_of(recipe: Recipe) -> Any:
    system: Any = recipe.system
    return system.backbone


def _weights(backbone: Any) -> int:
    """The number of weights of the layers."""
    return int(backbone.layers * backbone.width * (4 * backbone.width + 2 * backbone.feedforward))


def _layout(source: HFFolder, heads: Heads, usual: str) -> str:
    """The layout of the tokenizer. If it adds no special tokens, the layout is `usual`.

    But a head that reads the last token without a pooler then reads the texts without special tokens."""
    bare = heads.label and source.family.summary == "last" and source.family.pooler is None
    layout = tokenizers.layout_of(source.tokenizer, "a b" if bare else usual)
    tokenizers.check_roles(source.tokenizer, layout)
    if heads.label or heads.sentence or heads.choice:
        tokenizers.check_summary(source.family, layout)
    return layout


def _pretrained(recipe: Recipe, source: HFFolder, backbone: Any, heads: Heads) -> Recipe:
    """The recipe with the objectives of the checkpoint."""
    predict: dict[str, Any] = {}
    if heads.tokens:
        predict[heads.tokens] = source.family.token_head(source, backbone, heads.tied)
    if heads.replaced:
        predict[heads.replaced] = _replaced(source)
    return recipe.replace(
        predict=predict,
        arrange=_arranged(recipe.arrange, heads),
        schedule=tuple(_cut(stage, backbone.length, predict) for stage in recipe.schedule),
    )


def _arranged(usual: Any, heads: Heads) -> Any:
    """The `arrange` part of the recipe. It has a sentence task only if the checkpoint has a head for it."""
    return Blocks() if usual.classes and not heads.sentence else usual


def _cut(stage: Stage, length: int, predict: dict[str, Any]) -> Stage:
    weights = {name: weight for name, weight in stage.weights.items() if name in predict}
    return dataclasses.replace(stage, length=min(stage.length, length), weights=weights)


def _replaced(source: HFFolder) -> Replaced:
    found = config_json.activation(source.family, source.config)
    require(
        found == "gelu" or not source.has(source.family.names.replaced),
        (
            "config.json says hidden_act={found!r}, and the head that finds replaced tokens can only have gelu: "
            "save the checkpoint without that head, as {alone}"
        ),
        found=found,
        alone=source.family.alone,
    )
    return Replaced()


def _classifying(recipe: Recipe, source: HFFolder, backbone: Any) -> Recipe:
    """The recipe of a classifier: nothing is hidden, and the label is predicted."""
    config_json.check_only(source.config, source.family.config.only_label)
    problem = source.config.get("problem_type") or (
        "single_label_classification" if source.classes > 1 else "regression"
    )
    tasks: dict[str, tuple[Any, Any]] = {
        "single_label_classification": ("class", lambda names: Classify(labels=names)),
        "multi_label_classification": ("classes", lambda names: Multi(labels=names)),
        "regression": ("number", lambda names: Number(mean=0.0, deviation=1.0)),
    }
    require(
        problem in tasks
        and (source.classes == 1 if problem == "regression" else source.classes > 1 or "multi" in problem),
        (
            "a label here is one of several classes, several of them, or one number, got {classes} with "
            "problem_type={problem!r} in config.json: choose a checkpoint of problem_type 'single_label_classification', "
            "'multi_label_classification' or, with one class, 'regression'"
        ),
        classes=source.classes,
        problem=problem,
    )
    answer, task = tasks[problem]
    head = dataclasses.replace(_label(source, backbone), answer=answer, classes=source.classes)
    return _of_task(recipe, "label", head, task(_class_names(source, source.classes)), backbone)


def _other_task(source: HFFolder, backbone: Any) -> tuple[Any, Any]:
    """The head of a checkpoint for a task other than classes of texts, and its task."""
    norm = backbone.epsilon if source.family.pooler_norm else None  # of the layers before the output for each token
    if source.task_head == "span":
        return Span(norm=norm), FindSpan(no_answer=False)
    if source.task_head == "choice":
        config_json.check_only(source.config, source.family.config.only_choice)
        head = Choice(
            **_pooler(source, backbone), dropout=_dropout(source, backbone, source.family.config.before_choice)
        )
        return head, Choose(dropout=head.dropout, pooler=head.pooler, activation=head.activation)
    classes = len(source.tensors[source.family.names.tags["out.weight"][0]])
    dropout = _dropout(source, backbone, source.family.config.label_dropout)
    return Tags(classes=classes, dropout=dropout, norm=norm), Tag(labels=_class_names(source, classes), token="first")


def _of_task(recipe: Recipe, name: str, head: Any, task: Any, backbone: Any) -> Recipe:
    """The recipe of an adapted model: nothing is hidden, and the head is trained."""
    again = head.reads_decoder and "decoder" in gives_of(backbone)
    return recipe.replace(
        arrange=FromTask(),
        hide=Rewrite() if again else Nothing(),
        see=recipe_facts.reading_view(recipe),
        predict={name: head},
        task=task,
        adapt=dataclasses.replace(recipe.adapt, language=0.0),  # it has no head for tokens
        schedule=(Stage(length=backbone.length),),
    )


def _class_names(source: HFFolder, classes: int) -> tuple[str, ...]:
    written = source.config.get("id2label") or {}
    require(
        all(map(str.isdecimal, written)),
        "config.json: id2label must be numbered from 0, got {written:.60}",
        written=", ".join(written),
    )
    known = {int(key): str(name) for key, name in written.items()}
    return tuple(known.get(i, f"LABEL_{i}") for i in range(classes))


def _dropout(source: HFFolder, backbone: Any, name: tuple[str, float | None]) -> Any:
    """The dropout before the output of a head. `name`: its name in config.json, and its default."""
    called, otherwise = name
    said = source.config.get(called)
    return said if said is not None else backbone.dropout if otherwise is None else otherwise


def _label(source: HFFolder, backbone: Any) -> Label:
    dropout, bias = _dropout(source, backbone, source.family.config.label_dropout), source.family.pooler is not None
    return Label(classes=max(2, source.classes), bias=bias, dropout=dropout, **_pooler(source, backbone))


def _pooler(source: HFFolder, backbone: Any) -> dict[str, Any]:
    """What a label or the score of a choice is read from, and the dense layer before its output."""
    family = source.family
    return {
        "pool": _pool(source), "pooler": family.pooler is not None, "activation": family.pooler or "tanh",
        "pooler_bias": not family.pooler_norm, "pooler_norm": backbone.epsilon if family.pooler_norm else None,
    }  # fmt: skip


def _pool(source: HFFolder) -> Any:
    """What a label is read from: our name for the value of config.json."""
    ours = {theirs: name for name, theirs in source.family.pools.items()}
    said = source.config.get("classifier_pooling", next(iter(ours), ""))
    require(
        not ours or said in ours,
        "config.json says classifier_pooling={said!r}, the heads here can only do {known}: choose another checkpoint",
        said=said,
        known=", ".join(ours),
    )
    return ours.get(said, "summary")


def paired(usual: Any, alone: Recipe, generator: Recipe | None, *, shared: bool) -> Recipe:
    """The recipe of a discriminator and its generator. A missing generator is made as narrow as in the system `usual`."""
    backbone = _transformer_of(alone)
    if generator is None:
        made, fill = _smaller(backbone, usual.backbone.width // usual.generator.width), usual.fill
    else:
        made, fill = _transformer_of(generator), generator.predict["tokens"]
        _check_pair(made, backbone)
    made = dataclasses.replace(made, **{name: getattr(Transformer, name) for name in READS})
    return alone.replace(system=GeneratorDiscriminator(backbone=backbone, generator=made, fill=fill, shared=shared))


def _transformer_of(recipe: Recipe) -> Transformer:
    backbone = backbone_of(recipe)
    assert isinstance(backbone, Transformer), "no other backbone has a generator"
    return backbone


def _check_pair(generator: Transformer, backbone: Transformer) -> None:
    for what, its, wanted in (
        ("embeddings of one width", generator.embedding or generator.width, backbone.embedding or backbone.width),
        ("texts of one length", generator.length, backbone.length),
        ("as many kinds of segments", generator.segments, backbone.segments),
    ):
        require(
            its == wanted,
            "a generator and its discriminator have {what}, got {its} and {wanted}: import them one by one",
            what=what,
            its=its,
            wanted=wanted,
        )


def _smaller(backbone: Transformer, part: int) -> Transformer:
    """A network whose layers have a fraction (1 / part) of the width; attention heads keep their width."""
    heads = max(1, backbone.heads // part)
    width = heads * (backbone.width // backbone.heads)
    return dataclasses.replace(backbone, heads=heads, width=width, feedforward=max(1, backbone.feedforward // part))
