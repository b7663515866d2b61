"""ModernBERT in Hugging Face's format: rotary positions, layers with a window, gated feed-forward layers, no biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unmask.backbone import Local, Rotary, Transformer
from unmask.convert.config_json import check_only, read_transformer
from unmask.convert.family import Config, Family
from unmask.convert.names import Names, Table
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.recipes import modernbert

_FULL, _SLIDING = "full_attention", "sliding_attention"  # their names for layers without and with a window
_EVERY = 3  # if config.json does not say which layers have no window
_THETAS = {
    _FULL: ("global_rope_theta", 160_000.0),
    _SLIDING: ("local_rope_theta", 10_000.0),
}  # their old names, defaults
_FIELDS: dict[str, tuple[str, Any]] = {
    "layers": ("num_hidden_layers", 22),
    "width": ("hidden_size", 768),
    "heads": ("num_attention_heads", 12),
    "feedforward": ("intermediate_size", 1152),
    "length": ("max_position_embeddings", 8192),
    "activation": ("hidden_activation", "gelu"),
    "dropout": ("embedding_dropout", 0.0),
    "epsilon": ("norm_eps", 1e-5),
    "deviation": ("initializer_range", 0.02),
}
_TYPES: dict[str, Any] = {
    "layer_types": tuple[str, ...] | None, "global_attn_every_n_layers": int, "local_attention": int,
    "rope_parameters": dict[str, Any] | None, "global_rope_theta": float | None, "local_rope_theta": float | None,
    "classifier_pooling": str,
}  # fmt: skip
_NO_BIASES = {"attention_bias": False, "mlp_bias": False, "norm_bias": False, "classifier_bias": False}


def _claims(recipe: Recipe, backbone: Transformer) -> str:
    return (
        f"system.backbone.norm={backbone.norm}, gated={str(backbone.gated).lower()} and see={type(recipe.see).__name__}"
    )


def _read_network(family: Family, config: Mapping[str, Any], like: Transformer) -> Transformer:
    made = read_transformer(family, config, like)
    local = _read_local(config, made.layers)
    theta, local_theta = (_read_theta(config, kind) for kind in (_FULL, _SLIDING))
    return replace(made, local=local, positions=Rotary(theta, local_theta if local else None))


def _layer_types(layers: int, local: Local | None) -> list[str]:
    return [_FULL if local is None or local.reach_of(number) is None else _SLIDING for number in range(layers)]


def _read_local(config: Mapping[str, Any], layers: int) -> Local | None:
    """The layers with a window; None if no layer has one. Old files give only the distance between the others."""
    every = config.get("global_attn_every_n_layers", _EVERY)
    said = config.get("layer_types")
    reach = config.get("local_attention", Local().window) // 2
    require(
        reach >= 1, "config.json says local_attention={reach}, 2 or more is needed", reach=config.get("local_attention")
    )
    if said is None and every >= 2:
        return Local(2 * reach, every)
    if said is None or set(said) == {_FULL}:
        return None
    possible = [Local(2 * reach, number) for number in (max(every, 2), *range(2, layers + 1))]
    found = [local for local in possible if _layer_types(layers, local) == list(said)]
    require(
        bool(found),
        (
            "config.json says layer_types={said}, the backbone here can only have {full} in the first layer and in every "
            "n-th layer after it, and {sliding} in the others: choose another checkpoint"
        ),
        said=said,
        full=_FULL,
        sliding=_SLIDING,
    )
    return found[0]


def _read_theta(config: Mapping[str, Any], kind: str) -> float:
    """The base of the wavelengths in layers of this kind."""
    name, usual = _THETAS[kind]
    check_only(config, {"rope_scaling": None})
    said = (config.get("rope_parameters") or {}).get(kind) or {}
    require(
        isinstance(said, dict) and said.get("rope_type", "default") == "default",
        "config.json says rope_parameters={said}, the backbone here can only do rope_type='default': choose another checkpoint",
        said=said,
    )
    theta = said.get("rope_theta", config.get(name, usual))
    require(isinstance(theta, int | float), "config.json: rope_theta must be a number, got {theta!r}", theta=theta)
    return float(theta)


def _more_config(backbone: Any) -> dict[str, Any]:
    """Values that newer versions of transformers read, and the same under the names that older versions read."""
    local, positions = backbone.local, backbone.positions
    inner = positions.theta if positions.local_theta is None else positions.local_theta
    thetas = {_FULL: positions.theta, _SLIDING: inner}
    return {
        "layer_types": _layer_types(backbone.layers, local),
        "global_attn_every_n_layers": 1 if local is None else local.every,
        "local_attention": Local().window if local is None else local.window,
        "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()},
        **{_THETAS[kind][0]: theta for kind, theta in thetas.items()},
    }


def _weights(named: dict[str, str]) -> Table:
    return {f"{ours}.weight": (f"{theirs}.weight",) for ours, theirs in named.items()}


_POOLER = {"dense": "head.dense", "norm": "head.norm"}  # the same modules before tokens and before a label
_LABEL: Table = {**_weights(_POOLER | {"out": "classifier"}), "out.bias": ("classifier.bias",)}
_TOKENS: Table = {  # the same layers before an output for each token
    **_weights({f"before.{ours}": theirs for ours, theirs in _POOLER.items()} | {"out": "classifier"}),
    "out.bias": ("classifier.bias",),
}
FAMILY = Family(
    model_type="modernbert",
    recipe=modernbert,
    config=Config(
        _FIELDS,
        pad=50_283,
        label_dropout=("classifier_dropout", 0.0),
        attention_dropout="attention_dropout",
        always=_NO_BIASES | {"decoder_bias": True, "classifier_activation": "gelu"},
        only=_NO_BIASES | {"decoder_bias": True, "classifier_activation": "gelu"},
        types=_TYPES,
        token_ids={"cls_token_id": "cls", "sep_token_id": "sep"},
    ),
    names=Names(
        prefix="model.",
        network=_weights({
            "embed.token": "embeddings.tok_embeddings",
            "embed.norm": "embeddings.norm",
            "final_norm": "final_norm",
        }),
        place="layers.{}",
        block=_weights({
            "attention_norm": "attn_norm",
            "attention.qkv": "attn.Wqkv",
            "attention.out": "attn.Wo",
            "mlp_norm": "mlp_norm",
            "mlp.up": "mlp.Wi",
            "mlp.down": "mlp.Wo",
        }),
        tokens={**_weights(_POOLER), "weight": ("decoder.weight",), "bias": ("decoder.bias",)},
        label=_LABEL,
        tags=_TOKENS,
        span=_TOKENS,
        choice=_LABEL,
        computed=r"\.inv_freq$",
    ),
    architectures={
        (): "ModernBertModel",
        ("tokens",): "ModernBertForMaskedLM",
        ("label",): "ModernBertForSequenceClassification",
        ("tags",): "ModernBertForTokenClassification",
        ("span",): "ModernBertForQuestionAnswering",
        ("choice",): "ModernBertForMultipleChoice",
    },
    claims=_claims,
    network_values={"norm": "pre", "gated": True},
    layer_values={"first_norm": False, "biases": False, "gated": True},
    positions=Rotary,
    transform="gelu",
    pooler="gelu",
    pooler_norm=True,
    pools={"summary": "cls", "mean": "mean"},
    values={Local: {"window": "written", "every": "written"}, Rotary: {"theta": "written", "local_theta": "written"}},
    read_network=_read_network,
    more_config=_more_config,
)  # fmt: skip
