"""Shared by GPT and GPT-2: fields of config.json, names of tensors, classes."""

from __future__ import annotations

from typing import Any

from unmask.backbone import Transformer
from unmask.convert.names import Names, layers
from unmask.recipe import Recipe

FIELDS: dict[str, tuple[str, Any]] = {
    "layers": ("n_layer", 12),
    "width": ("n_embd", 768),
    "heads": ("n_head", 12),
    "length": ("n_positions", 1024),
    "activation": ("activation_function", "gelu_new"),
    "dropout": ("resid_pdrop", 0.1),
    "epsilon": ("layer_norm_epsilon", 1e-5),
    "deviation": ("initializer_range", 0.02),
}
LABEL_DROPOUT = ("classifier_dropout", 0.0)


def names(token: str, position: str, more: dict[str, str]) -> Names:
    """The names of the tensors. `token`, `position`: the two tables. `more`: layers outside of the blocks."""
    return Names(
        prefix="transformer.",
        network={
            "embed.token.weight": (f"{token}.weight",),
            "embed.position.weight": (f"{position}.weight",),
            **layers(more),
        },
        place="h.{}",
        block=layers({
            "attention_norm": "ln_1",
            "attention.qkv": "attn.c_attn",
            "attention.out": "attn.c_proj",
            "mlp_norm": "ln_2",
            "mlp.up": "mlp.c_fc",
            "mlp.down": "mlp.c_proj",
        }),
        tokens={"weight": ("lm_head.weight",)},
        label={"out.weight": ("score.weight",)},
        transposed=("attention.qkv.weight", "attention.out.weight", "mlp.up.weight", "mlp.down.weight"),
        computed=r"\.attn\.(masked_)?bias$|\.position_ids$",  # causal masks and position numbers
    )  # fmt: skip


def architectures(title: str) -> dict[tuple[str, ...], str]:
    return {
        (): f"{title}Model",
        ("tokens",): f"{title}LMHeadModel",
        ("label",): f"{title}ForSequenceClassification",
    }


def claims(recipe: Recipe, backbone: Transformer) -> str:
    """The settings that decide the family of a recipe whose tokens see only the left: the place of the norm."""
    return f"system.backbone.norm={backbone.norm} and see={type(recipe.see).__name__}"
