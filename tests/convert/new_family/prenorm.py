"""A family that only the tests have: BERT with the norm before each layer, its queries, keys and values in one tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unmask.backbone import Transformer
from unmask.convert import adjust_tensors, bert_layers
from unmask.convert.adjust_tensors import Adjusted
from unmask.convert.config_json import read_transformer
from unmask.convert.family import Config, Family
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads, Names, layers
from unmask.convert.network_checks import check_transformer
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.recipes import roberta

_APART, _JOINED = ".attention.self.query.weight", ".attention.in_proj.weight"


def _claims(recipe: Recipe, backbone: Transformer) -> str:
    return f"system.backbone.norm={backbone.norm}"


def _read_network(family: Family, config: Mapping[str, Any], like: Transformer) -> Transformer:
    return replace(read_transformer(family, config, like), norm="pre")


def _check(family: Family, recipe: Recipe, backbone: Transformer) -> None:
    check_transformer(family, recipe, backbone)
    gate = getattr(backbone, "gate", 0.0)
    require(gate == 0, f"Hugging Face's prenorm has no gate, got system.backbone.gate={gate}: train with 0")


def _three(name: str) -> list[str]:
    return [name.replace("query", which) for which in ("query", "key", "value")]


def _finish(tensors: dict[str, Tensor], backbone: Transformer) -> dict[str, Tensor]:
    """Queries, keys and values in one tensor, head by head."""
    found = dict(tensors)
    for name in [name for name in tensors if name.endswith(_APART)]:
        apart = [found.pop(each).unflatten(0, (backbone.heads, -1)) for each in _three(name)]
        found[name.replace(_APART, _JOINED)] = torch.stack(apart, 1).flatten(0, 2).contiguous()
    return found


def _adjust(source: HFFolder, backbone: Any, heads: Heads) -> Adjusted:
    tensors = dict(source.tensors)
    for name in [name for name in tensors if name.endswith(_JOINED)]:
        whole = tensors.pop(name).unflatten(0, (backbone.heads, 3, -1))
        apart = _three(name.replace(_JOINED, _APART))
        tensors |= {each: whole[:, i].flatten(0, 1) for i, each in enumerate(apart)}
    return adjust_tensors.adjust(replace(source, tensors=tensors), backbone, heads)


FAMILY = Family(
    model_type="prenorm",
    recipe=roberta,
    config=Config(bert_layers.FIELDS, always={"norm_first": True}),
    names=Names(
        prefix="prenorm.",
        network={
            **{ours: theirs for ours, theirs in bert_layers.EMBEDDINGS.items() if "norm" not in ours},
            **layers({"final_norm": "encoder.norm"}),
        },
        place=bert_layers.PLACE,
        block=bert_layers.BLOCK,
        tokens={
            "weight": ("head.decoder.weight",),
            "bias": ("head.bias",),
            **layers({"dense": "head.dense", "norm": "head.norm"}),
        },
        label=layers({"dense": "head.dense", "out": "head.out"}),
    ),
    architectures={
        (): "PrenormModel",
        ("tokens",): "PrenormForMaskedLM",
        ("label",): "PrenormForSequenceClassification",
    },
    claims=_claims,
    network_values={"norm": "pre"},
    read_network=_read_network,
    adjust=_adjust,
    check=_check,
    finish=_finish,
)
