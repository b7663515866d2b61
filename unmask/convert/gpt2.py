"""GPT-2 in Hugging Face's format: tokens see the left, and the norm is before each layer and after the last."""

from __future__ import annotations

from unmask.convert import gpt_layers
from unmask.convert.family import Config, Family
from unmask.recipes import gpt2

FAMILY = Family(
    model_type="gpt2",
    recipe=gpt2,
    config=Config(
        gpt_layers.FIELDS | {"feedforward": ("n_inner", None)},
        label_dropout=gpt_layers.LABEL_DROPOUT,
        attention_dropout="attn_pdrop",
        embedding_dropout="embd_pdrop",
        only={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    ),
    names=gpt_layers.names("wte", "wpe", {"final_norm": "ln_f"}),
    architectures=gpt_layers.architectures("GPT2")
    | {("tags",): "GPT2ForTokenClassification", ("span",): "GPT2ForQuestionAnswering"},
    claims=gpt_layers.claims,
    network_values={"norm": "pre"},
    sees="left",
    predicts="next",
    transform=None,
    pooler=None,
    summary="last",
)
