"""XLNet in Hugging Face's format: relative positions, two streams, a memory; texts are padded on the left."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask.backbone import TransformerXL
from unmask.convert import relative_config
from unmask.convert.family import Config, Family
from unmask.convert.names import Names, layers
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.recipes import xlnet

_FIELDS: dict[str, tuple[str, Any]] = {
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
_SUMMARY = {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh"}
_PER_HEAD = ("width", "heads", "head")


def _claims(recipe: Recipe, backbone: TransformerXL) -> str:
    return "system.backbone=TransformerXL"


def _check(family: Family, recipe: Recipe, backbone: TransformerXL) -> None:
    for name, value, wanted in (
        ("cutoffs", backbone.cutoffs, ()),
        ("streams", backbone.streams, 2),
        ("shared_biases", backbone.shared_biases, False),
        ("scaled_embeddings", backbone.scaled_embeddings, False),
    ):
        require(
            value == wanted,
            "Hugging Face's xlnet has system.backbone.{name}={wanted}, got {value}: train with that",
            name=name,
            wanted=wanted,
            value=value,
        )
    require(
        backbone.head * backbone.heads == backbone.width,
        (
            "Hugging Face's xlnet has system.backbone.head={width}, got {head}, where width={width_2} and "
            "heads={heads}: head x heads must be the width"
        ),
        width=backbone.width // backbone.heads,
        head=backbone.head,
        width_2=backbone.width,
        heads=backbone.heads,
    )


def _no_segments(backbone: TransformerXL) -> dict[str, Tensor]:
    """Zero tensors for segments, if our network has none: Hugging Face's attention always has them."""
    shape = (backbone.heads, backbone.head)
    shapes = {} if backbone.segments else {"segment_bias": shape, "segment": (2, *shape)}
    return {
        f"backbone.blocks.{i}.attention.{name}": torch.zeros(size)
        for i in range(backbone.layers)
        for name, size in shapes.items()
    }


FAMILY = Family(
    model_type="xlnet",
    recipe=xlnet,
    config=Config(
        _FIELDS,
        pad=5,
        label_dropout=("summary_last_dropout", 0.1),
        attention_dropout=None,
        # The data decides what is remembered of a row and in which direction it is read; a single text is read forward.
        always={"attn_type": "bi", "bi_data": False, "reuse_len": None, "same_length": False, "untie_r": True},
        only={"attn_type": "bi", "same_length": False, "untie_r": True},
        only_label=_SUMMARY,
        only_choice=_SUMMARY,
        types=relative_config.TYPES,
    ),
    names=Names(
        prefix="transformer.",
        network={"embed.token.weight": ("word_embedding.weight",), "mask": ("mask_emb",)},
        place="layer.{}",
        block={
            "attention.query.weight": ("rel_attn.q",),
            "attention.key_value.weight": ("rel_attn.k", "rel_attn.v"),
            "attention.place.weight": ("rel_attn.r",),
            "attention.out.weight": ("rel_attn.o",),
            "attention.content_bias": ("rel_attn.r_w_bias",),
            "attention.place_bias": ("rel_attn.r_r_bias",),
            "attention.segment_bias": ("rel_attn.r_s_bias",),
            "attention.segment": ("rel_attn.seg_embed",),
            **layers({
                "attention_norm": "rel_attn.layer_norm",
                "mlp.up": "ff.layer_1",
                "mlp.down": "ff.layer_2",
                "mlp_norm": "ff.layer_norm",
            }),
        },
        tokens={"weight": ("lm_loss.weight",), "bias": ("lm_loss.bias",)},
        label=layers({"dense": "sequence_summary.summary", "out": "logits_proj"}),
        choice=layers({"dense": "sequence_summary.summary", "out": "logits_proj"}),
        transposed=("attention.query.weight", "attention.key_value.weight", "attention.place.weight"),
        shapes={
            "mask": (1, 1, "width"),
            "attention.query.weight": _PER_HEAD,
            "attention.key_value.weight": _PER_HEAD,
            "attention.place.weight": _PER_HEAD,
            "attention.out.weight": _PER_HEAD,
        },
    ),
    architectures={
        (): "XLNetModel",
        ("tokens",): "XLNetLMHeadModel",
        ("label",): "XLNetForSequenceClassification",
        ("tags",): "XLNetForTokenClassification",
        ("span",): "XLNetForQuestionAnsweringSimple",
        ("choice",): "XLNetForMultipleChoice",
    },
    claims=_claims,
    network=TransformerXL,
    network_values={},
    transform=None,
    summary="last",
    padding_side="left",
    values=relative_config.VALUES,
    read_network=relative_config.read_network,
    notes=relative_config.notes,
    check=_check,
    more_config=lambda backbone: {"clamp_len": -1 if backbone.clamp is None else backbone.clamp},
    more_tensors=_no_segments,
)  # fmt: skip
