"""A table of what `export` does with every value of a recipe. A value that is not in the table is an error.

A new field of a part needs a line in the table before a recipe with that part can be exported. Parts that every family
supports are listed here. Parts that only one family supports are listed in the `values` of its file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from unmask import backbone, data, hide, predict, see
from unmask.axes import rules
from unmask.backbone import Transformer
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.system import GeneratorDiscriminator, Single

Fate = Literal[
    "written",  # written to config.json, the weights or the tokenizer
    "checked",  # decides the architecture, or is an error if the architecture computes something else
    "training",  # matters only in training: the trained model computes the same with any value
    "left out",  # a value of a head or decoder that Hugging Face does not have; the report names it
]

FATES: dict[type, dict[str, Fate]] = {
    Recipe: {
        "name": "training", "size": "training", "variant": "training", "family": "checked",
        "tokenizer": "training",  # how it was trained; the tokenizer itself is written
        "layout": "written", "arrange": "checked", "hide": "checked", "see": "checked", "system": "checked",
        "predict": "checked", "optimise": "training", "continuing": "training", "shrink": "training",
        "reads": "written",
        "segments": "checked", "tracks": "training", "writes_with": "training", "start": "training",
        "schedule": "training",  # except what its stages hide, which is checked
        "adapt": "training",
        "task": "checked",  # its labels are written
        "tune": "checked",  # what it added is merged first
    },
    Single: {"backbone": "written"},
    GeneratorDiscriminator: {
        "backbone": "written", "generator": "written", "fill": "written", "shared": "written", "learned": "training",
        "generator_rate": "training", "discriminator_rate": "training", "temperature": "training",
    },
    Transformer: {
        "layers": "written", "width": "written", "heads": "written", "feedforward": "written", "embedding": "written",
        "sharing": "checked", "length": "written", "norm": "checked", "embedding_norm": "checked",
        "first_norm": "checked", "biases": "checked", "local": "checked", "gated": "checked",
        "attention": "checked", "positions": "checked", "decoder": "checked", "knowledge": "checked",
        "components": "checked",
        "segments": "written", "tasks": "written", "activation": "written",
        "dropout": "written", "attention_dropout": "written", "activation_dropout": "training", "epsilon": "written",
        "deviation": "written", "initial": "training", "initial_projection": "training", "scaled_init": "training",
    },
    backbone.EncoderDecoder: {
        "layers": "written", "decoder_layers": "written", "width": "written", "heads": "written", "feedforward": "written",
        "length": "written", "norm": "checked", "embedding_norm": "checked", "scaled_embedding": "written",
        "positions": "checked", "components": "checked", "activation": "written", "dropout": "written", "attention_dropout": "written",
        "activation_dropout": "written", "epsilon": "checked", "initial": "training", "deviation": "written",
    },
    # recurrent networks are refused as a whole
    **{
        part: dict.fromkeys((field.name for field in dataclasses.fields(part)), "checked")
        for part in (
            backbone.LSTM, backbone.TwoWayLSTM, backbone.AttentiveLSTM, backbone.Dot, backbone.General, backbone.Concat
        )  # fmt: skip
    },
    data.Blocks: {"cross": "training", "fill": "training"},
    data.ContinuingPairs: {"reuse": "training", "random": "training", "both": "training"},
    data.FromTask: {},
    data.SourceTarget: {"alone": "training"},
    data.NextSentence: {"random": "training", "short": "training"},
    data.SentenceOrder: {"swapped": "training", "short": "training"},
    data.FullRows: {},
    data.ContinuingRows: {"deviation": "training", "half": "training"},
    data.ThreeWay: {"previous": "training", "random": "training", "short": "training"},
    backbone.Components: {"file": "checked", "count": "checked", "most": "checked"},
    backbone.Full: {},
    backbone.Fusion: {
        "layers": "checked", "heads": "checked", "width": "checked", "entities": "checked", "graph": "checked",
        "link_by": "checked",
    },
    backbone.Learned: {"every": "checked", "start": "training"},
    backbone.NoPositions: {},
    backbone.Sinusoidal: {"every": "checked"},
    hide.Links: {"wrong": "training", "unlinked": "training", "most": "training", "entities": "training"},
    hide.Masked: {"units": "training", "budget": "training", "replace": "training", "copies": "training", "at": "checked"},
    hide.Next: {"ahead": "training", "second": "training"},  # whether a head reads further ahead is checked
    hide.Nothing: {},
    hide.PermuteSentences: {},
    hide.Previous: {},
    hide.Rewrite: {},
    hide.Rotate: {},
    hide.WriteSecond: {"halves": "training"},
    hide.Window: {"budget": "training", "replace": "training", "start": "training", "end": "training", "copies": "training"},
    see.Everything: {},
    see.LeftToRight: {},
    see.Permuted: {"block": "training"},
    see.Prefix: {},
    see.RightToLeft: {},
    predict.Adaptive: {"own": "left out"},
    predict.FastVectors: {},
    predict.LargeVectors: {},
    predict.Neighbours: {"samples": "training"},
    predict.Entities: {"among": "left out", "width": "left out", "epsilon": "left out"},
    predict.SpanBoundary: {"places": "left out", "width": "left out", "epsilon": "left out"},
    predict.Choice: {
        "pool": "checked", "pooler": "checked", "activation": "checked", "pooler_bias": "checked", "pooler_norm": "checked",
        "dropout": "written",
    },
    predict.AllTokens: {"epsilon": "left out"},
    predict.Label: {
        "classes": "written", "pool": "checked", "pooler": "checked", "activation": "checked", "bias": "checked",
        "pooler_bias": "checked", "pooler_norm": "checked", "dropout": "written", "answer": "written", "readings": "checked",
        "weights": "training",
    },
    predict.EveryLayer: {"head": "checked"},
    # its pooling is written by the export for sentence-transformers
    predict.TextVectors: {"pool": "left out", "loss": "training", "dims": "training"},
    predict.Tags: {"classes": "written", "dropout": "written", "crf": "checked", "dense": "checked", "norm": "checked", "weights": "training", "column": "training"},
    predict.Span: {"pool": "checked", "norm": "checked"},
    predict.Relation: {"classes": "left out", "pool": "left out", "dropout": "left out", "weights": "left out"},
    predict.San: {"classes": "left out", "steps": "left out", "dropout": "left out", "weights": "left out"},
    predict.AnswerSteps: {"count": "left out", "dropout": "left out"},
    predict.Replaced: {"where": "training", "initial": "training"},
    predict.Tokens: {
        "smoothing": "training",
        "tied": "written", "transform": "checked", "bias": "checked", "activation": "checked", "epsilon": "checked",
        "transform_bias": "checked", "target": "checked", "layer": "checked",
    },
}  # fmt: skip


def check_known(recipe: Recipe, known: Mapping[type, Mapping[str, Fate]]) -> None:
    """Refuse a recipe with a part, or a value of a part, that is not in `known`."""
    for name, part in parts(recipe):
        fates = known.get(type(part))
        require(
            fates is not None,
            (
                "export does not know what {name}={part_kind} is in Hugging Face's format: use the run folder as "
                "it is, or add the part to {name_2} or to the `values` of a family"
            ),
            name=name,
            part_kind=type(part).__name__,
            name_2=__name__,
        )
        for field in dataclasses.fields(part):
            require(
                field.name in (fates or {}),
                (
                    "export does not know what {name}{name_2}={getattr} is in Hugging Face's format: use the run "
                    "folder as it is, or add the value to {name_3}"
                ),
                name=name + "." if name else "",
                name_2=field.name,
                getattr=getattr(part, field.name),
                name_3=__name__,
            )


def strange_parts(recipe: Recipe, own: Mapping[type, Mapping[str, Fate]]) -> list[str]:
    """The parts, with their dotted names, that are neither in the shared table nor in the table `own` of a family."""
    return [f"{name}={part}" for name, part in parts(recipe) if type(part) not in FATES and type(part) not in own]


def parts_left_out(recipe: Recipe, own: Mapping[type, Mapping[str, Fate]]) -> tuple[str, ...]:
    """The parts inside of networks, as settings, that a family with these values has no place for."""
    inside = [(name, part) for name, part in parts(recipe) if name.startswith("system.")]
    return tuple(
        f"{name}={type(part).__name__}"
        for name, part in inside
        if set(own.get(type(part), {}).values()) == {"left out"}
    )


def parts(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    """The parts whose values may matter to a trained model, each with its dotted name. The recipe's own name is empty."""
    yield "", recipe
    yield "arrange", recipe.arrange
    yield "see", recipe.see
    for number, stage in enumerate(recipe.schedule):
        for rule in rules(stage.hide or recipe.hide):
            yield ("hide" if stage.hide is None else f"schedule.{number}.hide"), rule
    yield from _inside("system", recipe.system)
    for name, head in recipe.predict.items():
        yield f"predict.{name}", head


def _inside(name: str, part: Any) -> Iterator[tuple[str, Any]]:
    """A part and the parts inside it."""
    yield name, part
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from _inside(f"{name}.{field.name}", value)
