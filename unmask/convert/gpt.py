"""GPT in Hugging Face's format: tokens see the left, the norm is after each sum, and an import adds special tokens."""

from __future__ import annotations

from unmask.convert import gpt_layers
from unmask.convert.family import Config, Family
from unmask.recipes import gpt

FAMILY = Family(
    model_type="openai-gpt",
    recipe=gpt,
    config=Config(
        gpt_layers.FIELDS | {"length": ("n_positions", 512), "activation": ("afn", "gelu")},
        activations={"gelu": "gelu_tanh", "relu": "relu"},
        label_dropout=gpt_layers.LABEL_DROPOUT,
        attention_dropout="attn_pdrop",
        embedding_dropout="embd_pdrop",
    ),
    names=gpt_layers.names("tokens_embed", "positions_embed", {}),
    architectures=gpt_layers.architectures("OpenAIGPT"),
    claims=gpt_layers.claims,
    sees="left",
    predicts="next",
    transform=None,
    pooler=None,
    summary="last",
    added_tokens={"pad": "<pad>", "start": "<start>", "delimiter": "<delimiter>", "extract": "<extract>"},
)
