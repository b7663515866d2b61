"""BERT in Hugging Face's format: a plain network with segments or a sentence task."""

from __future__ import annotations

from unmask.backbone import Transformer
from unmask.convert import bert_layers
from unmask.convert.family import Config, Family
from unmask.recipe import Recipe
from unmask.recipes import bert
from unmask.system import SENTENCE, objectives


def _claims(recipe: Recipe, backbone: Transformer) -> str | None:
    pairs = backbone.segments or SENTENCE in objectives(recipe)
    return bert_layers.because(recipe, backbone) if bert_layers.plain(backbone) and pairs else None


FAMILY = Family(
    model_type="bert",
    recipe=bert,
    config=Config(bert_layers.FIELDS),
    names=bert_layers.names("bert."),
    architectures=bert_layers.architectures("Bert"),
    claims=_claims,
    tokenizer="BertTokenizer",
)
