"""The recipe that an imported checkpoint goes on with: that of its family, with its numbers, heads and tokenizer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from unmask.backbone import Transformer
from unmask.convert import config as configs
from unmask.convert import tokenizer as tokenizers
from unmask.convert.names import Heads, Kind
from unmask.convert.source import Source
from unmask.data import Blocks, Given
from unmask.errors import require
from unmask.hide import Nothing
from unmask.predict import Label, Tokens
from unmask.recipe import Recipe, Stage
from unmask.recipes import bert, gpt2, roberta
from unmask.system import SENTENCE, Single

_FAMILIES: dict[Kind, Any] = {"bert": bert, "roberta": roberta, "gpt2": gpt2}


def heads_of(source: Source) -> Heads:
    """The heads of the run. A checkpoint that has none gets a fresh one for tokens, so that pretraining can go on."""
    if source.classes:
        return Heads(label="label")
    sentence = source.kind == "bert" and "cls.seq_relationship.weight" in source.tensors
    tied = bool(source.config.get("tie_word_embeddings", True))
    return Heads(tokens="tokens", sentence=SENTENCE if sentence else None, tied=tied)


def recipe_of(source: Source, heads: Heads) -> Recipe:
    family = _FAMILIES[source.kind]
    backbone = configs.backbone(source.kind, source.config, family.SIZES["base"])
    # The size sets the rate and the batch: the nearest in number of weights has the best ones.
    size = min(family.SIZES, key=lambda name: abs(math.log(_weights(family.SIZES[name]) / _weights(backbone))))
    base: Recipe = family.recipe(size=size)
    recipe = base.replace(
        tokenizer=tokenizers.kind_of(source.tokenizer),
        layout=_layout(source, heads, base.layout),
        system=Single(backbone=backbone),
        schedule=tuple(
            dataclasses.replace(stage, length=min(stage.length, backbone.length)) for stage in base.schedule
        ),
    )
    return _classifying(recipe, source, backbone) if heads.label else _pretrained(recipe, source, backbone, heads)


def _weights(backbone: Transformer) -> int:
    return backbone.layers * backbone.width * (4 * backbone.width + 2 * backbone.feedforward)


def _layout(source: Source, heads: Heads, usual: str) -> str:
    """As the tokenizer says. One that says nothing takes the usual one, but a GPT-2 classifier reads the bare text."""
    layout = tokenizers.layout_of(source.tokenizer, "a b" if heads.label and source.kind == "gpt2" else usual)
    tokenizers.check_roles(source.tokenizer, layout)
    if heads.label or heads.sentence:
        tokenizers.check_summary(source.kind, layout)
    return layout


def _pretrained(recipe: Recipe, source: Source, backbone: Transformer, heads: Heads) -> Recipe:
    """Tokens are predicted as the checkpoint does it, and a sentence task is there only where it has one."""
    tokens = recipe.predict["tokens"]
    assert isinstance(tokens, Tokens)
    tokens = dataclasses.replace(tokens, tied=heads.tied)
    if tokens.transform:
        tokens = dataclasses.replace(tokens, activation=_activation(source), epsilon=backbone.epsilon)
    keeps = heads.sentence or not recipe.arrange.classes  # type: ignore[attr-defined]
    return recipe.replace(predict={"tokens": tokens}, arrange=recipe.arrange if keeps else Blocks())


def _activation(source: Source) -> Any:
    """The activation of the head for tokens: BERT's is that of the network, RoBERTa's is always the same."""
    if source.kind != "bert" or "cls.predictions.transform.dense.weight" not in source.tensors:
        return "gelu"
    found = configs.activation(source.kind, source.config)
    require(
        found != "relu",
        "config.json says hidden_act='relu', and the head for tokens can only have gelu: "
        "save the checkpoint without that head, as BertModel",
    )
    return found


def _classifying(recipe: Recipe, source: Source, backbone: Transformer) -> Recipe:
    """Nothing is hidden, the label is predicted."""
    problem = source.config.get("problem_type")
    require(
        problem in (None, "single_label_classification") and source.classes > 1,
        f"a label here is one of several classes, got {source.classes} with problem_type={problem!r} in config.json: "
        "choose a checkpoint of problem_type 'single_label_classification'",
    )
    return recipe.replace(
        arrange=Given(),
        hide=Nothing(),
        predict={"label": _label(source, backbone)},
        schedule=(Stage(length=backbone.length),),
    )


def _label(source: Source, backbone: Transformer) -> Label:
    known = {int(key): str(name) for key, name in (source.config.get("id2label") or {}).items()}
    class_names = tuple(known.get(i, f"LABEL_{i}") for i in range(source.classes))
    reads_all = source.kind != "gpt2"
    dropout = source.config.get("classifier_dropout")
    if dropout is None:
        dropout = backbone.dropout if reads_all else 0.0
    return Label(classes=source.classes, names=class_names, pooler=reads_all, bias=reads_all, dropout=dropout)
