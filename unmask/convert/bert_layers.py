"""Shared by the families with BERT's layers: fields of config.json, names of tensors, and when a recipe belongs to one."""

from __future__ import annotations

from typing import Any

from unmask.backbone import Transformer
from unmask.convert.names import Names, Table, layers
from unmask.recipe import Recipe

FIELDS: dict[str, tuple[str, Any]] = {
    "layers": ("num_hidden_layers", 12),
    "width": ("hidden_size", 768),
    "heads": ("num_attention_heads", 12),
    "feedforward": ("intermediate_size", 3072),
    "length": ("max_position_embeddings", 512),
    "segments": ("type_vocab_size", 2),
    "activation": ("hidden_act", "gelu"),
    "dropout": ("hidden_dropout_prob", 0.1),
    "epsilon": ("layer_norm_eps", 1e-12),
    "deviation": ("initializer_range", 0.02),
}
EMBEDDINGS: Table = {
    "embed.token.weight": ("embeddings.word_embeddings.weight",),
    "embed.position.weight": ("embeddings.position_embeddings.weight",),
    "embed.segment.weight": ("embeddings.token_type_embeddings.weight",),
    **layers({"embed.norm": "embeddings.LayerNorm"}),
}
PLACE = "encoder.layer.{}"
BLOCK = layers({
    "attention.qkv": "attention.self.query attention.self.key attention.self.value",
    "attention.out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.up": "intermediate.dense",
    "mlp.down": "output.dense",
    "mlp_norm": "output.LayerNorm",
})  # fmt: skip
COMPUTED = r"\.(position_ids|token_type_ids)$"


def names(prefix: str) -> Names:
    """The names of a network with a pooler and a head that is called `cls`."""
    pooler, head = f"{prefix}pooler.dense", "cls.predictions"
    return Names(
        prefix=prefix,
        network=EMBEDDINGS,
        place=PLACE,
        block=BLOCK,
        tokens={
            "weight": (f"{head}.decoder.weight",),
            "bias": (f"{head}.bias",),
            **layers({"dense": f"{head}.transform.dense", "norm": f"{head}.transform.LayerNorm"}),
        },
        label=layers({"dense": pooler, "out": "classifier"}),
        sentence=layers({"dense": pooler, "out": "cls.seq_relationship"}),
        choice=layers({"dense": pooler, "out": "classifier"}),
        computed=COMPUTED,
    )


def architectures(title: str) -> dict[tuple[str, ...], str]:
    """The classes of a family that has a head for next-sentence prediction."""
    return {
        (): f"{title}Model",
        ("tokens",): f"{title}ForMaskedLM",
        ("sentence",): f"{title}ForNextSentencePrediction",
        ("tokens", "sentence"): f"{title}ForPreTraining",
        ("label",): f"{title}ForSequenceClassification",
        ("tags",): f"{title}ForTokenClassification",
        ("span",): f"{title}ForQuestionAnswering",
        ("choice",): f"{title}ForMultipleChoice",
    }


def plain(backbone: Transformer) -> bool:
    """Whether the layers do not share all weights, and the embeddings are as wide as the layers."""
    return backbone.sharing != "all" and not narrow(backbone)


def narrow(backbone: Transformer) -> bool:
    """Whether the width of the embeddings differs from the width of the layers."""
    return backbone.embedding not in (None, backbone.width)


def because(recipe: Recipe, backbone: Transformer) -> str:
    """The settings that decide which family a plain network belongs to."""
    return (
        f"see={type(recipe.see).__name__}, system.backbone.segments={backbone.segments} and "
        f"arrange={type(recipe.arrange).__name__}"
    )


def only_by_name(recipe: Recipe, backbone: Transformer) -> None:
    """For a family with the same network as another one: a recipe belongs to it only if it names the family."""
