"""RoBERTa in Hugging Face's format: a plain network without segments; position numbers start after the padding token's id."""

from __future__ import annotations

from unmask.backbone import Transformer
from unmask.convert import bert_layers
from unmask.convert.family import Config, Family
from unmask.convert.names import Names, layers
from unmask.recipe import Recipe
from unmask.recipes import roberta
from unmask.system import SENTENCE, objectives


def _claims(recipe: Recipe, backbone: Transformer) -> str | None:
    pairs = backbone.segments or SENTENCE in objectives(recipe)
    return bert_layers.because(recipe, backbone) if bert_layers.plain(backbone) and not pairs else None


FAMILY = Family(
    model_type="roberta",
    recipe=roberta,
    config=Config(bert_layers.FIELDS, pad=1),
    names=Names(
        prefix="roberta.",
        network=bert_layers.EMBEDDINGS,
        place=bert_layers.PLACE,
        block=bert_layers.BLOCK,
        tokens={
            "weight": ("lm_head.decoder.weight",),
            "bias": ("lm_head.bias",),
            **layers({"dense": "lm_head.dense", "norm": "lm_head.layer_norm"}),
        },
        label=layers({"dense": "classifier.dense", "out": "classifier.out_proj"}),
        choice=layers({"dense": "roberta.pooler.dense", "out": "classifier"}),
        computed=bert_layers.COMPUTED,
        others=("pooler",),
    ),
    architectures={
        (): "RobertaModel",
        ("tokens",): "RobertaForMaskedLM",
        ("label",): "RobertaForSequenceClassification",
        ("tags",): "RobertaForTokenClassification",
        ("span",): "RobertaForQuestionAnswering",
        ("choice",): "RobertaForMultipleChoice",
    },
    claims=_claims,
    transform="gelu",
    needs_own_pad=True,
    position_offset=lambda pad: pad + 1,
)
