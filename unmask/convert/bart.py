"""BART in Hugging Face's format: an encoder and a decoder. Position numbers start after two rows that are never used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from unmask.axes import gives_of
from unmask.backbone import EncoderDecoder, Learned
from unmask.backbone.transformer import norms_embeddings
from unmask.convert import adjust_tensors, config_json, recipe_facts
from unmask.convert.family import Config, Family
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads, Names, layers
from unmask.convert.network_checks import check_activation
from unmask.errors import require
from unmask.predict import Tags, Tokens
from unmask.recipe import Recipe
from unmask.recipes import bart

_EPSILON = 1e-5  # of all norms; config.json does not have it
_BIAS = "final_logits_bias"  # 1 V; BART itself leaves it at zero
# fields of config.json that the encoder and the decoder have each; here both have the same value
_SAME = {"encoder_attention_heads": "decoder_attention_heads", "encoder_ffn_dim": "decoder_ffn_dim"}
_ATTENTION = "{0}.q_proj {0}.k_proj {0}.v_proj"
_OWN = {
    "attention.qkv": _ATTENTION.format("self_attn"),
    "attention.out": "self_attn.out_proj",
    "attention_norm": "self_attn_layer_norm",
    "mlp.up": "fc1",
    "mlp.down": "fc2",
    "mlp_norm": "final_layer_norm",
}
_CROSS = {
    "cross.query": "encoder_attn.q_proj",
    "cross.kv": "encoder_attn.k_proj encoder_attn.v_proj",
    "cross.out": "encoder_attn.out_proj",
    "cross_norm": "encoder_attn_layer_norm",
}


def _read_network(family: Family, config: Mapping[str, Any], like: EncoderDecoder) -> EncoderDecoder:
    values = config_json.read_values(family, config)
    for one, other in _SAME.items():
        require(
            config.get(one) == config.get(other),
            "config.json says {one}={value} and {other}={second}, and here the encoder and the decoder have the same: choose "
            "another checkpoint",
            one=one,
            value=config.get(one),
            other=other,
            second=config.get(other),
        )
    return dataclasses.replace(like, **values)


def _adjust(source: HFFolder, backbone: EncoderDecoder, heads: Heads) -> adjust_tensors.Adjusted:
    """The bias of the scores without its first dimension. A bias of zeros is dropped."""
    bias = source.tensors.get(_BIAS)
    rest = {name: tensor for name, tensor in source.tensors.items() if name != _BIAS}
    own = {_BIAS: bias[0]} if bias is not None and bool(bias.any()) and heads.tokens else {}
    return adjust_tensors.adjust(dataclasses.replace(source, tensors=rest | own), backbone, heads)


def _token_head(source: HFFolder, backbone: EncoderDecoder, tied: bool) -> Tokens:
    bias = source.tensors.get(_BIAS)
    return Tokens(tied=tied, transform=False, bias=bias is not None and bool(bias.any()))


def _check(family: Family, recipe: Recipe, backbone: EncoderDecoder) -> None:
    require(
        isinstance(backbone.positions, Learned),
        "Hugging Face's bart has learned positions, got system.backbone.positions={positions}: train with system.backbone.positions=Learned",
        positions=type(backbone.positions).__name__,
    )
    require(
        not recipe_facts.repeats_positions(backbone),
        "Hugging Face's bart adds positions once, got system.backbone.positions.every=true: use the run folder as it is",
    )
    require(
        norms_embeddings(backbone.encoder),
        "Hugging Face's bart has a norm on its embeddings, got system.backbone.embedding_norm={norm}: train with "
        "system.backbone.embedding_norm=true",
        norm=str(backbone.embedding_norm).lower(),
    )
    require(
        backbone.epsilon == _EPSILON,
        "the norms of Hugging Face's bart have epsilon={wanted}, got system.backbone.epsilon={epsilon}: train with "
        "system.backbone.epsilon={wanted}",
        wanted=_EPSILON,
        epsilon=backbone.epsilon,
    )
    check_activation(family, backbone.activation)
    # transformers has no class for Bart's tags, so they are left out whatever they read
    labels = any(head.reads_decoder and not isinstance(head, Tags) for head in recipe.predict.values())
    require(
        not labels or "decoder rows" in gives_of(recipe.hide),
        "Hugging Face's bart reads labels and answers from its decoder, got hide={hide}: adapt it again, with hide=Rewrite",
        hide=type(recipe.hide).__name__,
    )
    for name, head in recipe.predict.items():
        require(
            not isinstance(head, Tokens) or head.tied,
            "Hugging Face's bart scores tokens by their embeddings, got predict.{name}.tied=false: train with "
            "predict.{name}.tied=true",
            name=name,
        )


def _more_config(backbone: EncoderDecoder) -> dict[str, Any]:
    return {
        "max_position_embeddings": backbone.length,
        "decoder_attention_heads": backbone.heads,
        "decoder_ffn_dim": backbone.feedforward,
        "num_hidden_layers": backbone.layers,
    }


def _finish(tensors: dict[str, Tensor], backbone: EncoderDecoder) -> dict[str, Tensor]:
    return {name: tensor[None] if name == _BIAS else tensor for name, tensor in tensors.items()}


FAMILY = Family(
    model_type="bart",
    recipe=bart,
    config=Config(
        {
            "layers": ("encoder_layers", 12),
            "decoder_layers": ("decoder_layers", 12),
            "width": ("d_model", 1024),
            "heads": ("encoder_attention_heads", 16),
            "feedforward": ("encoder_ffn_dim", 4096),
            "length": ("max_position_embeddings", 1024),
            "scaled_embedding": ("scale_embedding", False),
            "activation": ("activation_function", "gelu"),
            "dropout": ("dropout", 0.1),
            "activation_dropout": ("activation_dropout", 0.0),
            "deviation": ("init_std", 0.02),
        },
        pad=1,
        label_dropout=("classifier_dropout", 0.0),
        attention_dropout="attention_dropout",
        always={"is_encoder_decoder": True},
        only={"is_encoder_decoder": True, "normalize_before": False, "add_final_layer_norm": False, "static_position_embeddings": False},
        token_ids={"decoder_start_token_id": "sep", "forced_eos_token_id": "sep"},
        first_written="forced_bos_token_id",
    ),
    names=Names(
        prefix="model.",
        embed="encoder.embed.",
        network={
            "encoder.embed.token.weight": ("shared.weight",),
            "encoder.embed.position.weight": ("encoder.embed_positions.weight",),
            "decoder_embed.position.weight": ("decoder.embed_positions.weight",),
            **layers({"encoder.embed.norm": "encoder.layernorm_embedding", "decoder_embed.norm": "decoder.layernorm_embedding"}),
        },
        place="encoder.layers.{}",
        block=layers(_OWN),
        stacks={
            "encoder.blocks": ("encoder.layers.{}", layers(_OWN)),
            "decoder_blocks": ("decoder.layers.{}", layers(_OWN | _CROSS)),
        },
        tokens={"weight": ("lm_head.weight",), "bias": (_BIAS,)},
        label=layers({"dense": "classification_head.dense", "out": "classification_head.out_proj"}),
        # copies of the table of tokens, in old checkpoints
        computed=r"(encoder|decoder)\.(embed_tokens\.weight|version)$",
    ),
    architectures={
        (): "BartModel",
        ("tokens",): "BartForConditionalGeneration",
        ("label",): "BartForSequenceClassification",
        ("span",): "BartForQuestionAnswering",
    },
    claims=lambda recipe, backbone: "system.backbone=EncoderDecoder",
    network=EncoderDecoder,
    predicts="written",
    transform=None,
    position_offset=lambda pad: 2,
    read_network=_read_network,
    adjust=_adjust,
    token_head=_token_head,
    check=_check,
    more_config=_more_config,
    finish=_finish,
)  # fmt: skip
