"""The recipe that an imported checkpoint goes on with: that of its family, with its numbers, heads and tokenizer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from unmask.backbone import Transformer, TransformerXL
from unmask.convert import clusters
from unmask.convert import config as configs
from unmask.convert import tokenizer as tokenizers
from unmask.convert.config import FAMILIES, Backbone
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import NAMES, Heads, Kind
from unmask.data import Blocks, FromTask
from unmask.errors import require
from unmask.hide import Nothing
from unmask.predict import Adaptive, Label, Replaced, Tokens
from unmask.recipe import Part, Recipe, Stage
from unmask.recipes import albert, bert, electra, ernie, gpt, gpt2, roberta, transformer_xl, xlnet
from unmask.system import SENTENCE, GeneratorDiscriminator, Single
from unmask.system.generator_discriminator import READS
from unmask.tasks import Classify

_RECIPES: dict[Kind, Any] = {
    "albert": albert, "bert": bert, "electra": electra, "ernie": ernie, "gpt2": gpt2, "openai-gpt": gpt,
    "roberta": roberta, "transfo-xl": transformer_xl, "xlnet": xlnet,
}  # fmt: skip


def heads_of(source: HFFolder) -> Heads:
    """The heads of the run. A checkpoint that has none gets a fresh one, so that pretraining can go on."""
    called = NAMES[source.kind]
    if source.classes:
        return Heads(label="label")
    if called.replaced and not source.has(called.tokens):
        return Heads(replaced="replaced")
    tied = bool(source.config.get("tie_word_embeddings", source.config.get("tie_weight", True)))
    return Heads(tokens="tokens", sentence=SENTENCE if source.has(called.sentence) else None, tied=tied)


def recipe_of(source: HFFolder, heads: Heads) -> Recipe:
    """The recipe of one network, alone."""
    usual: dict[str, Recipe] = {size: _RECIPES[source.kind].recipe(size=size) for size in _RECIPES[source.kind].SIZES}
    backbone = configs.backbone(source.kind, source.config, backbone_of(usual["base"]))
    # The size sets the rate and the batch: the nearest in number of weights has the best ones.
    size = min(usual, key=lambda name: abs(math.log(_weights(backbone_of(usual[name])) / _weights(backbone))))
    base = usual[size]
    recipe = base.replace(
        tokenizer=tokenizers.kind_of(source.tokenizer),
        layout=_layout(source, heads, base.layout),
        system=Single(backbone=backbone),
        reads=backbone.length if source.longest is None else int(min(source.longest, backbone.length)),
    )
    return _classifying(recipe, source, backbone) if heads.label else _pretrained(recipe, source, backbone, heads)


def backbone_of(recipe: Recipe) -> Backbone:
    return recipe.system.backbone  # type: ignore[attr-defined, no-any-return]


def _weights(backbone: Backbone) -> int:
    return backbone.layers * backbone.width * (4 * backbone.width + 2 * backbone.feedforward)


def _layout(source: HFFolder, heads: Heads, usual: str) -> str:
    """As the tokenizer says. One that says nothing takes the usual one, but a GPT classifier reads the bare text."""
    bare = heads.label and FAMILIES[source.kind].last and FAMILIES[source.kind].pooler is None
    layout = tokenizers.layout_of(source.tokenizer, "a b" if bare else usual)
    tokenizers.check_roles(source.tokenizer, layout)
    if heads.label or heads.sentence:
        tokenizers.check_summary(source.kind, layout)
    return layout


def _pretrained(recipe: Recipe, source: HFFolder, backbone: Backbone, heads: Heads) -> Recipe:
    """Predicted is what the checkpoint predicts, and a sentence task is there only where it has one."""
    predict: dict[str, Part] = {}
    if heads.tokens:
        predict[heads.tokens] = _tokens(source, backbone, heads.tied)
    if heads.replaced:
        predict[heads.replaced] = _replaced(source)
    return recipe.replace(
        predict=predict,
        arrange=_arranged(recipe.arrange, heads),
        schedule=tuple(_fitted(stage, backbone.length, predict) for stage in recipe.schedule),
    )


def _arranged(usual: Part, heads: Heads) -> Part:
    return Blocks() if usual.classes and not heads.sentence else usual  # type: ignore[attr-defined]


def _fitted(stage: Stage, length: int, predict: dict[str, Part]) -> Stage:
    weights = {name: weight for name, weight in stage.weights.items() if name in predict}
    return dataclasses.replace(stage, length=min(stage.length, length), weights=weights)


def _tokens(source: HFFolder, backbone: Backbone, tied: bool) -> Tokens | Adaptive:
    kind = source.kind
    if isinstance(backbone, TransformerXL) and backbone.cutoffs:
        return Adaptive(own=clusters.own(source))
    if FAMILIES[kind].transform is None:
        return Tokens(tied=tied, transform=False, bias="bias" in NAMES[kind].tokens)
    return Tokens(tied=tied, activation=configs.tokens_activation(kind, backbone), epsilon=backbone.epsilon)


def _replaced(source: HFFolder) -> Replaced:
    found = configs.activation(source.kind, source.config)
    require(
        found == "gelu" or not source.has(NAMES[source.kind].replaced),
        f"config.json says hidden_act={found!r}, and the head that finds replaced tokens can only have gelu: "
        f"save the checkpoint without that head, as {NAMES[source.kind].title}Model",
    )
    return Replaced()


def _classifying(recipe: Recipe, source: HFFolder, backbone: Backbone) -> Recipe:
    """Nothing is hidden, the label is predicted."""
    configs.check_only(source.config, dict(FAMILIES[source.kind].only_label))
    problem = source.config.get("problem_type")
    require(
        problem in (None, "single_label_classification") and source.classes > 1,
        f"a label here is one of several classes, got {source.classes} with problem_type={problem!r} in config.json: "
        "choose a checkpoint of problem_type 'single_label_classification'",
    )
    return recipe.replace(
        arrange=FromTask(),
        hide=Nothing(),
        see=recipe.see.serving,  # type: ignore[attr-defined]
        predict={"label": _label(source, backbone)},
        task=Classify(labels=_class_names(source)),
        adapt=dataclasses.replace(recipe.adapt, language=0.0),  # it has no head for tokens
        schedule=(Stage(length=backbone.length),),
    )


def _class_names(source: HFFolder) -> tuple[str, ...]:
    written = source.config.get("id2label") or {}
    require(
        all(map(str.isdecimal, written)), f"config.json: id2label must be numbered from 0, got {', '.join(written):.60}"
    )
    known = {int(key): str(name) for key, name in written.items()}
    return tuple(known.get(i, f"LABEL_{i}") for i in range(source.classes))


def _label(source: HFFolder, backbone: Backbone) -> Label:
    family = FAMILIES[source.kind]
    called, otherwise = family.dropout
    dropout = source.config.get(called)
    if dropout is None:
        dropout = backbone.dropout if otherwise is None else otherwise
    pooler = family.pooler is not None
    return Label(classes=source.classes, pooler=pooler, activation=family.pooler or "tanh", bias=pooler,
                 dropout=dropout)  # fmt: skip


def paired(kind: Kind, alone: Recipe, generator: Recipe | None, *, shared: bool) -> Recipe:
    """The recipe of a discriminator and its generator; one that is not given has the share of the width that is usual."""
    backbone, usual = _transformer_of(alone), _RECIPES[kind].recipe(size=alone.size).system
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
            f"a generator and its discriminator have {what}, got {its} and {wanted}: import them one by one",
        )


def _smaller(backbone: Transformer, part: int) -> Transformer:
    """A network whose layers are so many times narrower, its heads of attention as wide as before."""
    heads = max(1, backbone.heads // part)
    width = heads * (backbone.width // backbone.heads)
    return dataclasses.replace(backbone, heads=heads, width=width, feedforward=max(1, backbone.feedforward // part))
