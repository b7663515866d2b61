"""The families with a memory: what config.json says of XLNet and Transformer-XL, and our backbone of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from unmask.backbone import TransformerXL
from unmask.errors import require

# Field of TransformerXL: name in config.json, and the value that holds where the file has none.
XLNET: dict[str, tuple[str, Any]] = {
    "layers": ("n_layer", 24),
    "width": ("d_model", 1024),
    "heads": ("n_head", 16),
    "feedforward": ("d_inner", 4096),
    "activation": ("ff_activation", "gelu"),
    "memory": ("mem_len", None),
    "clamp": ("clamp_len", -1),
    "dropout": ("dropout", 0.1),
    "epsilon": ("layer_norm_eps", 1e-12),
    "deviation": ("initializer_range", 0.02),
}
TRANSFO_XL: dict[str, tuple[str, Any]] = {
    "layers": ("n_layer", 18),
    "width": ("d_model", 1024),
    "heads": ("n_head", 16),
    "head": ("d_head", 64),
    "feedforward": ("d_inner", 4096),
    "memory": ("mem_len", 1600),
    "clamp": ("clamp_len", 1000),
    "cutoffs": ("cutoffs", (20_000, 40_000, 200_000)),
    "divide": ("div_val", 4),
    "dropout": ("dropout", 0.1),
    "epsilon": ("layer_norm_epsilon", 1e-5),
    "deviation": ("init_std", 0.02),
    "projection_deviation": ("proj_init_std", 0.01),
}


def backbone(values: dict[str, Any], config: Mapping[str, Any], like: TransformerXL) -> TransformerXL:
    """A backbone with these values of config.json; what they do not say is as in `like`."""
    embedding = config.get("d_embed", values["width"])
    require(
        embedding == values["width"],
        f"config.json says d_embed={embedding} and d_model={values['width']}, the backbone here has frequent tokens as wide "
        "as its layers: choose another checkpoint",
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
    """What config.json says and the network here does not do."""
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


def numbers(made: TransformerXL) -> dict[str, Any]:
    """The values of our fields as config.json writes them, where they are not ours."""
    return {"clamp": -1 if made.clamp is None else made.clamp}
