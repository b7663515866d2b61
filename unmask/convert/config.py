"""config.json: Hugging Face's numbers of a network and ours, in both directions; and what each family does unsaid."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unmask.backbone import Transformer, TransformerXL
from unmask.convert import xl
from unmask.convert.names import Kind
from unmask.data import NextSentence, SentenceOrder
from unmask.errors import require, unknown
from unmask.type_check import check_types

Backbone = Transformer | TransformerXL
# Field of Transformer: name in config.json, and the value that holds where the file has none.
_BERT: dict[str, tuple[str, Any]] = {
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
_ELECTRA: dict[str, tuple[str, Any]] = _BERT | {
    "width": ("hidden_size", 256),
    "heads": ("num_attention_heads", 4),
    "feedforward": ("intermediate_size", 1024),
    "embedding": ("embedding_size", 128),
}
_ALBERT: dict[str, tuple[str, Any]] = _BERT | {
    "width": ("hidden_size", 4096),
    "heads": ("num_attention_heads", 64),
    "feedforward": ("intermediate_size", 16384),
    "embedding": ("embedding_size", 128),
    "activation": ("hidden_act", "gelu_new"),
    "dropout": ("hidden_dropout_prob", 0.0),
}
_GPT2: dict[str, tuple[str, Any]] = {
    "layers": ("n_layer", 12),
    "width": ("n_embd", 768),
    "heads": ("n_head", 12),
    "feedforward": ("n_inner", None),
    "length": ("n_positions", 1024),
    "activation": ("activation_function", "gelu_new"),
    "dropout": ("resid_pdrop", 0.1),
    "epsilon": ("layer_norm_epsilon", 1e-5),
    "deviation": ("initializer_range", 0.02),
}
_OPENAI: dict[str, tuple[str, Any]] = {name: theirs for name, theirs in _GPT2.items() if name != "feedforward"} | {
    "length": ("n_positions", 512),
    "activation": ("afn", "gelu"),
}
XL: tuple[Kind, ...] = ("xlnet", "transfo-xl")  # whose network is our TransformerXL
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Family:
    """What a family does whatever its config.json says."""

    fields: dict[str, tuple[str, Any]]
    activations: Mapping[str, str] = field(default_factory=lambda: ACTIVATIONS)  # their names, and ours
    pad: int = 0  # the padding token where config.json names none
    transform: Literal["network", "gelu"] | None = "network"  # activation of the head for tokens; none: no transform
    pooler: Literal["tanh", "gelu"] | None = "tanh"  # activation before a label; none: there is no pooler
    dropout: tuple[str, float | None] = ("classifier_dropout", None)  # before a label; none: as in the network
    # the dropout on attention weights: written, and not read, since an import trains with the fast kernels; none: it has none
    attention: str | None = "attention_probs_dropout_prob"
    always: tuple[tuple[str, Any], ...] = ()  # what config.json says besides
    dropped: tuple[
        str, ...
    ] = ()  # what config.json calls the dropout on the embeddings, where it has a name of its own
    tokenizer: str | None = None  # the class that many open its folders with, which splits every text as BERT does
    asks: type = NextSentence  # what the sentence head answers, where there is one
    last: bool = False  # a label is read off the last token, not the first
    adds: tuple[
        tuple[str, str], ...
    ] = ()  # roles that its tokenizers lack, and the tokens that an import adds for them
    pads: Literal["left", "right"] = "right"  # where Hugging Face's tokenizer puts padding
    only: tuple[tuple[str, Any], ...] = ()  # as ONLY, of this family alone
    only_label: tuple[tuple[str, Any], ...] = ()  # the same, where it reads a label


FAMILIES: dict[Kind, Family] = {
    "bert": Family(_BERT, tokenizer="BertTokenizer"),
    "ernie": Family(_BERT, tokenizer="BertTokenizer", always=(("use_task_id", False),)),
    "roberta": Family(_BERT, pad=1, transform="gelu"),
    "electra": Family(_ELECTRA, tokenizer="ElectraTokenizer", transform="gelu", pooler="gelu"),
    "albert": Family(
        _ALBERT,
        asks=SentenceOrder,
        dropout=("classifier_dropout_prob", 0.1),
        always=(("num_hidden_groups", 1), ("inner_group_num", 1)),
    ),
    "gpt2": Family(
        _GPT2, transform=None, pooler=None, dropout=("classifier_dropout", 0.0), attention="attn_pdrop",
        dropped=("embd_pdrop",), last=True,
    ),
    "openai-gpt": Family(
        _OPENAI, activations={"gelu": "gelu_tanh", "relu": "relu"}, transform=None, pooler=None,
        dropout=("classifier_dropout", 0.0), attention="attn_pdrop", dropped=("embd_pdrop",), last=True,
        adds=(("pad", "<pad>"), ("start", "<start>"), ("delimiter", "<delimiter>"), ("extract", "<extract>")),
    ),
    "xlnet": Family(
        xl.XLNET, pad=5, transform=None, dropout=("summary_last_dropout", 0.1), attention=None, last=True, pads="left",
        # What is remembered of a row, and which way it is read, is a matter of the data: a text alone is read forward.
        always=(("attn_type", "bi"), ("bi_data", False), ("reuse_len", None), ("same_length", False), ("untie_r", True)),
        only=(("attn_type", "bi"), ("same_length", False), ("untie_r", True)),
        only_label=(("summary_type", "last"), ("summary_use_proj", True), ("summary_activation", "tanh")),
    ),
    "transfo-xl": Family(
        xl.TRANSFO_XL, transform=None, pooler=None, attention=None, last=True, only=(("pre_lnorm", False), ("attn_type", 0)),
    ),
}  # fmt: skip
# Values that change what the network computes, each with the only one that our backbone can compute.
ONLY: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
}


_TYPES: dict[str, Any] = {  # of what is read besides the numbers of the network
    "model_type": str, "architectures": tuple[str, ...] | None, "pad_token_id": int | None, "id2label": dict[str, Any] | None,
    "problem_type": str | None, "use_task_id": bool | None, "tie_word_embeddings": bool | None, "tie_weight": bool | None,
    "untie_r": bool | None, "same_length": bool | None, "bi_data": bool | None, "d_embed": int,
}  # fmt: skip


def checked(config: Mapping[str, Any]) -> Kind:
    """The family of a checkpoint, whose config.json holds what is read from it in the right types."""
    check_types(_TYPES, config, "config.json: ")
    kind = kind_of(config)
    family, ours = FAMILIES[kind], typing.get_type_hints(TransformerXL if kind in XL else Transformer)
    hints: dict[str, Any] = {family.dropout[0]: float | None}
    for name, (theirs, default) in family.fields.items():
        hint = str if name == "activation" else ours[name]
        hints[theirs] = hint | None if default is None else hint
    check_types(hints, config, "config.json: ")
    return kind


def kind_of(config: Mapping[str, Any]) -> Kind:
    """The family of a checkpoint."""
    require(
        "model_type" in config,
        f'config.json has no "model_type": add the one that fits, of {", ".join(FAMILIES)}',
    )
    kind = config["model_type"]
    if kind not in FAMILIES:
        raise unknown("model_type in config.json", str(kind), FAMILIES)
    return kind  # type: ignore[no-any-return]


def offset(kind: Kind, pad: int) -> int:
    """How many rows of the position table stand before the first position: RoBERTa counts on from its padding."""
    return pad + 1 if kind == "roberta" else 0


def backbone(kind: Kind, config: Mapping[str, Any], like: Backbone) -> Backbone:
    """A backbone with the numbers of a checkpoint; what config.json does not say is as in `like`."""
    check_only(config, ONLY | dict(FAMILIES[kind].only))
    values = {ours: config.get(theirs, default) for ours, (theirs, default) in FAMILIES[kind].fields.items()}
    if "activation" in values:
        values["activation"] = activation(kind, config)
    if isinstance(like, TransformerXL):
        return xl.backbone(values, config, like)
    values["feedforward"] = values.get("feedforward") or 4 * values["width"]
    values["length"] -= offset(kind, pad(kind, config))
    # A single kind of segment tells nothing apart: its row is added to the positions.
    values["segments"] = values["segments"] if values.get("segments", 0) > 1 else 0
    values["embedding"] = values["embedding"] if values.get("embedding") not in (None, values["width"]) else None
    return dataclasses.replace(like, **values)


def check_only(config: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse a value of config.json that our network cannot compute."""
    for name, only in known.items():
        value = config.get(name, only)
        require(
            value == only,
            f"config.json says {name}={value!r}, the backbone here can only do {only!r}: choose another checkpoint",
        )


def activation(kind: Kind, config: Mapping[str, Any]) -> str:
    name, default = FAMILIES[kind].fields["activation"]
    value, known = config.get(name, default), FAMILIES[kind].activations
    require(
        value in known,
        f"config.json says {name}={value!r}, the backbone here can only do {', '.join(known)}: choose another checkpoint",
    )
    return known[value]


def their_activation(kind: Kind, ours: str) -> str | None:
    """What a family calls an activation of ours; none where it has no such."""
    return next((theirs for theirs, known in FAMILIES[kind].activations.items() if known == ours), None)


def tokens_activation(kind: Kind, backbone: Backbone) -> Any:
    """The activation of the head for tokens."""
    return backbone.activation if FAMILIES[kind].transform == "network" else "gelu"


def pad(kind: Kind, config: Mapping[str, Any]) -> int:
    found = config.get("pad_token_id")
    return FAMILIES[kind].pad if found is None else int(found)


def numbers(kind: Kind, backbone: Backbone, pad: int) -> dict[str, Any]:
    """What config.json says of a backbone of ours."""
    ours = dataclasses.asdict(backbone) | {
        "activation": their_activation(kind, backbone.activation),
        "length": backbone.length + offset(kind, pad),
        "segments": max(backbone.segments, 1),
        "embedding": backbone.embedding or backbone.width,
    }
    ours |= xl.numbers(backbone) if isinstance(backbone, TransformerXL) else {}
    found = {theirs: ours[name] for name, (theirs, _) in FAMILIES[kind].fields.items()}
    name = FAMILIES[kind].attention
    attention = {} if name is None else {name: backbone.attention_dropout}
    return found | attention | dict(FAMILIES[kind].always) | dict.fromkeys(FAMILIES[kind].dropped, backbone.dropout)
