"""What `export` does with every value of a recipe. A value without a line here is refused by name.

A new field of a part gets a line when somebody has decided which of the four it is; until then nothing is exported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

from unmask import data, hide, predict, see
from unmask.backbone import Transformer, TransformerXL
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.system import GeneratorDiscriminator, Single, hides

Fate = Literal[
    "written",  # to config.json, the weights or the tokenizer
    "checked",  # it decides the architecture, or it is refused where the architecture computes something else
    "training",  # the finished model computes the same whatever it is
    "left out",  # a value of a head that Hugging Face does not have; the head is named in the report
]

FATES: dict[type, dict[str, Fate]] = {
    Recipe: {
        "name": "training", "size": "training", "variant": "training", "family": "checked",
        "tokenizer": "training",  # how it was trained; the tokenizer itself is written
        "layout": "written", "arrange": "checked", "hide": "checked", "see": "checked", "system": "checked",
        "predict": "checked", "optimise": "training", "continuing": "training", "shrink": "training",
        "reads": "written",
        "schedule": "training",  # but for what its stages hide, which is checked
        "adapt": "training",
        "task": "checked",  # its labels are written
    },
    Single: {"backbone": "written"},
    GeneratorDiscriminator: {
        "backbone": "written", "generator": "written", "fill": "written", "shared": "written", "learned": "training",
    },
    Transformer: {
        "layers": "written", "width": "written", "heads": "written", "feedforward": "written", "embedding": "written",
        "sharing": "checked", "length": "written", "norm": "checked", "embedding_norm": "checked",
        "positions": "checked", "every": "checked", "segments": "written", "activation": "written",
        "dropout": "written", "attention_dropout": "written", "activation_dropout": "training", "epsilon": "written",
        "deviation": "written", "initial": "training", "initial_projection": "training", "scaled_init": "training",
    },
    TransformerXL: {
        "layers": "written", "width": "written", "heads": "written", "head": "checked", "feedforward": "written",
        "memory": "written", "length": "written", "clamp": "written", "streams": "checked", "cutoffs": "checked",
        "divide": "training",  # it matters with cutoffs alone, and those are refused
        "segments": "written", "shared_biases": "checked", "scaled_embeddings": "checked", "activation": "written", "dropout": "written",
        "attention_dropout": "training", "epsilon": "written", "deviation": "written", "projection_deviation": "training",
    },
    data.Blocks: {"cross": "training", "fill": "training"},
    data.ContinuingPairs: {"reuse": "training", "random": "training", "both": "training"},
    data.FromTask: {},
    data.NextSentence: {"random": "training", "short": "training"},
    data.SentenceOrder: {"swapped": "training", "short": "training"},
    data.FullRows: {},
    data.ContinuingRows: {},
    data.ThreeWay: {"previous": "training", "random": "training", "short": "training"},
    hide.Mask: {
        "units": "training", "budget": "training", "mask": "training", "random": "training", "copies": "training",
        "draw": "training", "random_from": "training", "shuffle": "training",
    },
    hide.Next: {"ahead": "training"},  # whether a head reads further ahead is checked
    hide.Nothing: {},
    see.Everything: {},
    see.LeftToRight: {},
    see.Mixed: {"everything": "checked", "prefix": "training", "left": "training", "right": "training"},
    see.Permuted: {"block": "training"},
    see.Prefix: {},
    see.RightToLeft: {},
    predict.Adaptive: {"own": "left out"},
    predict.SpanBoundary: {"places": "left out", "width": "left out", "epsilon": "left out"},
    predict.Choice: {"pooler": "left out", "activation": "left out", "dropout": "left out"},
    predict.AllTokens: {"epsilon": "left out"},
    predict.Label: {
        "classes": "written", "pool": "checked", "pooler": "checked", "activation": "checked", "bias": "checked",
        "dropout": "written",
    },
    predict.EveryLayer: {"head": "checked"},
    predict.Replaced: {"where": "training", "initial": "training"},
    predict.Tokens: {
        "tied": "written", "transform": "checked", "bias": "checked", "activation": "checked", "epsilon": "checked",
        "ahead": "checked", "layer": "checked",
    },
}  # fmt: skip


def check_known(recipe: Recipe) -> None:
    """Refuse a recipe with a part, or a value of a part, that the table does not know."""
    for name, part in parts(recipe):
        known = FATES.get(type(part))
        require(
            known is not None,
            f"export does not know what {name}={type(part).__name__} is in Hugging Face's format: use the run folder as "
            f"it is, or add the part to {__name__}",
        )
        for field in dataclasses.fields(part):
            require(
                field.name in (known or {}),
                f"export does not know what {name + '.' if name else ''}{field.name}={getattr(part, field.name)} is in "
                f"Hugging Face's format: use the run folder as it is, or add the value to {__name__}",
            )


def parts(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    """The parts whose values may matter to a finished model, each under its dotted name; the recipe itself has none."""
    yield "", recipe
    yield "arrange", recipe.arrange
    yield "see", recipe.see
    for number, part in enumerate(hides(recipe)):
        yield ("hide" if part is recipe.hide else f"schedule.{number}.hide"), part
    yield "system", recipe.system
    for field in dataclasses.fields(recipe.system):
        part = getattr(recipe.system, field.name)
        if dataclasses.is_dataclass(part):
            yield f"system.{field.name}", part
    for name, head in recipe.predict.items():
        yield f"predict.{name}", head
