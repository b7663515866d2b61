"""ALBERT in Hugging Face's format: all layers share their weights, and embeddings are always projected to the layer width."""

from __future__ import annotations

from unmask.backbone import Transformer
from unmask.convert import bert_layers
from unmask.convert.family import Config, Family
from unmask.convert.names import Names, layers
from unmask.data import SentenceOrder
from unmask.recipe import Recipe
from unmask.recipes import albert

_GROUPS = {"num_hidden_groups": 1, "inner_group_num": 1}


def _claims(recipe: Recipe, backbone: Transformer) -> str | None:
    shared = backbone.sharing == "all"
    return f"see={type(recipe.see).__name__} and system.backbone.sharing=all" if shared else None


FAMILY = Family(
    model_type="albert",
    recipe=albert,
    config=Config(
        bert_layers.FIELDS
        | {
            "width": ("hidden_size", 4096),
            "heads": ("num_attention_heads", 64),
            "feedforward": ("intermediate_size", 16384),
            "embedding": ("embedding_size", 128),
            "activation": ("hidden_act", "gelu_new"),
            "dropout": ("hidden_dropout_prob", 0.0),
        },
        label_dropout=("classifier_dropout_prob", 0.1),
        always=_GROUPS,
        only=_GROUPS,
    ),
    names=Names(
        prefix="albert.",
        network=bert_layers.EMBEDDINGS | layers({"project": "encoder.embedding_hidden_mapping_in"}),
        place="encoder.albert_layer_groups.{}.albert_layers.0",
        block=layers({
            "attention.qkv": "attention.query attention.key attention.value",
            "attention.out": "attention.dense",
            "attention_norm": "attention.LayerNorm",
            "mlp.up": "ffn",
            "mlp.down": "ffn_output",
            "mlp_norm": "full_layer_layer_norm",
        }),
        tokens={
            "weight": ("predictions.decoder.weight",),
            "bias": ("predictions.bias",),
            **layers({"dense": "predictions.dense", "norm": "predictions.LayerNorm"}),
        },
        label=layers({"dense": "albert.pooler", "out": "classifier"}),
        sentence=layers({"dense": "albert.pooler", "out": "sop_classifier.classifier"}),
        choice=layers({"dense": "albert.pooler", "out": "classifier"}),
        computed=bert_layers.COMPUTED,
    ),
    architectures={
        (): "AlbertModel",
        ("tokens",): "AlbertForMaskedLM",
        ("tokens", "sentence"): "AlbertForPreTraining",
        ("label",): "AlbertForSequenceClassification",
        ("tags",): "AlbertForTokenClassification",
        ("span",): "AlbertForQuestionAnswering",
        ("choice",): "AlbertForMultipleChoice",
    },
    claims=_claims,
    sharing="all",
    sentence_task=SentenceOrder,
    always_projects=True,
)  # fmt: skip
