"""Shared by the families with relative positions and a memory: read config.json as our TransformerXL."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unmask.backbone import TransformerXL
from unmask.convert.config_json import read_values
from unmask.convert.exported_values import Fate
from unmask.errors import require

if TYPE_CHECKING:
    from unmask.convert.family import Family

TYPES: dict[str, Any] = {
    "tie_weight": bool | None, "untie_r": bool | None, "same_length": bool | None, "bi_data": bool | None, "d_embed": int,
}  # fmt: skip

VALUES: dict[type, dict[str, Fate]] = {
    TransformerXL: {
        "layers": "written", "width": "written", "heads": "written", "head": "checked", "feedforward": "written",
        "memory": "written", "length": "written", "clamp": "written", "streams": "checked", "cutoffs": "checked",
        "divide": "training",  # it matters only with cutoffs, and cutoffs cannot be exported
        "components": "checked", "segments": "written", "shared_biases": "checked", "scaled_embeddings": "checked", "activation": "written",
        "dropout": "written", "attention_dropout": "training", "epsilon": "written", "deviation": "written",
        "projection_deviation": "training",
    },
}  # fmt: skip


def read_network(family: Family, config: Mapping[str, Any], like: TransformerXL) -> TransformerXL:
    """A network with the values of config.json. Values that the file does not have are taken from `like`."""
    values = read_values(family, config)
    embedding = config.get("d_embed", values["width"])
    require(
        embedding == values["width"],
        (
            "config.json says d_embed={embedding} and d_model={values}, the backbone here has frequent tokens as "
            "wide as its layers: choose another checkpoint"
        ),
        embedding=embedding,
        values=values["width"],
    )
    clamp = values["clamp"] if (values["clamp"] or 0) > 0 else None
    memory = like.memory if values["memory"] is None else values["memory"]
    return dataclasses.replace(
        like,
        **values
        | {
            "head": values.get("head", values["width"] // values["heads"]),
            "clamp": clamp,
            "memory": memory if clamp is None else min(memory, clamp),
            "cutoffs": tuple(values.get("cutoffs", ())),
            "shared_biases": not config.get("untie_r", True),
        },
    )


def notes(config: Mapping[str, Any], made: TransformerXL) -> tuple[str, ...]:
    """Notes about settings of config.json that our network ignores."""
    memory = config.get("mem_len")
    found = {
        f"mem_len={memory} reaches beyond clamp_len={made.clamp}: the memory here has {made.memory} tokens": (
            memory is not None and memory > made.memory
        ),
        "same_length=true is not kept: the later tokens of a row see farther back than the first": (
            bool(config.get("same_length"))
        ),
        "bi_data=true is not kept: rows are read forward, and backward where the data is": bool(config.get("bi_data")),
    }
    return tuple(note for note, holds in found.items() if holds)
