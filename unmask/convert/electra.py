"""ELECTRA in Hugging Face's format: narrow embeddings, a generator that predicts tokens, a discriminator."""

from __future__ import annotations

from unmask.backbone import Transformer
from unmask.convert import bert_layers
from unmask.convert.family import Config, Family
from unmask.convert.names import Names, layers
from unmask.recipe import Recipe
from unmask.recipes import electra


def _claims(recipe: Recipe, backbone: Transformer) -> str | None:
    if backbone.sharing == "all" or not bert_layers.narrow(backbone):
        return None
    return f"see={type(recipe.see).__name__} and system.backbone.embedding={backbone.embedding}"


FAMILY = Family(
    model_type="electra",
    recipe=electra,
    config=Config(
        bert_layers.FIELDS
        | {
            "width": ("hidden_size", 256),
            "heads": ("num_attention_heads", 4),
            "feedforward": ("intermediate_size", 1024),
            "embedding": ("embedding_size", 128),
        },
        choice_dropout=("summary_last_dropout", 0.1),
        only_choice={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    ),
    names=Names(
        prefix="electra.",
        network=bert_layers.EMBEDDINGS | layers({"project": "embeddings_project"}),
        place=bert_layers.PLACE,
        block=bert_layers.BLOCK,
        tokens={
            "weight": ("generator_lm_head.weight",),
            "bias": ("generator_lm_head.bias",),
            **layers({"dense": "generator_predictions.dense", "norm": "generator_predictions.LayerNorm"}),
        },
        label=layers({"dense": "classifier.dense", "out": "classifier.out_proj"}),
        replaced=layers({
            "dense": "discriminator_predictions.dense", "out": "discriminator_predictions.dense_prediction",
        }),
        choice=layers({"dense": "sequence_summary.summary", "out": "classifier"}),
        computed=bert_layers.COMPUTED,
    ),
    architectures={
        (): "ElectraModel",
        ("tokens",): "ElectraForMaskedLM",
        ("replaced",): "ElectraForPreTraining",
        ("label",): "ElectraForSequenceClassification",
        ("tags",): "ElectraForTokenClassification",
        ("span",): "ElectraForQuestionAnswering",
        ("choice",): "ElectraForMultipleChoice",
    },
    claims=_claims,
    transform="gelu",
    pooler="gelu",
    tokenizer="ElectraTokenizer",
)  # fmt: skip
