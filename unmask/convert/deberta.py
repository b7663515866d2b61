"""DeBERTa in Hugging Face's format: attention by content and by distance, without the enhanced mask decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from unmask.backbone import NoPositions, Transformer
from unmask.backbone.disentangled import Disentangled
from unmask.backbone.mask_decoder import MaskDecoder
from unmask.convert import adjust_tensors, bert_layers
from unmask.convert.adjust_tensors import Adjusted
from unmask.convert.config_json import check_only, read_transformer
from unmask.convert.family import Config, Family
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads, Table, layers
from unmask.convert.network_checks import check_transformer
from unmask.errors import require
from unmask.recipe import Recipe
from unmask.recipes import deberta

_DISTANCES = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
_UNSAID: dict[str, Any] = {  # default values for fields that config.json does not have
    "relative_attention": False, "pos_att_type": None, "position_biased_input": True, "max_relative_positions": -1,
    "legacy": True,
}  # fmt: skip
_TYPES: dict[str, Any] = {
    "relative_attention": bool, "pos_att_type": str | tuple[str, ...] | None, "position_biased_input": bool,
    "max_relative_positions": int, "legacy": bool, "talking_head": bool, "embedding_size": int,
}  # fmt: skip
_NETWORK: Table = {
    **{ours: theirs for ours, theirs in bert_layers.EMBEDDINGS.items() if "position" not in ours},
    "shared_attention.table.weight": ("encoder.rel_embeddings.weight",),
}
_BLOCK: Table = {
    **{ours: theirs for ours, theirs in bert_layers.BLOCK.items() if "qkv" not in ours},
    "attention.qkv.weight": ("attention.self.in_proj.weight",),
    "attention.query_bias": ("attention.self.q_bias",),
    "attention.value_bias": ("attention.self.v_bias",),
    "attention.place_key.weight": ("attention.self.pos_proj.weight",),
    **layers({"attention.place_query": "attention.self.pos_q_proj"}),
}
_BERT = bert_layers.names("deberta.")  # the head that predicts tokens has the same names as in BERT
_NEW_HEAD = {  # the same head in files with legacy=false
    f"lm_predictions.lm_head.{theirs}": f"cls.predictions.{ours}"
    for theirs, ours in (
        ("bias", "bias"),
        *((f"{name}.{which}", f"transform.{name}.{which}") for name in ("dense", "LayerNorm") for which in ("weight", "bias")),
    )
}  # fmt: skip


def _claims(recipe: Recipe, backbone: Transformer) -> str | None:
    parts = {name: type(getattr(backbone, name)) for name in ("attention", "decoder")}
    named = [f"system.backbone.{name}={part.__name__}" for name, part in parts.items() if part in _VALUES]
    return " and ".join(named) or None


def _check(family: Family, recipe: Recipe, backbone: Transformer) -> None:
    for name, wanted in (("attention", Disentangled), ("positions", NoPositions)):
        found = type(getattr(backbone, name))
        require(
            found is wanted,
            (
                "a deberta is exported if it has {name}={wanted}, got system.backbone.{name}={found}: train with "
                "system.backbone.{name}={wanted}, or use the run folder as it is"
            ),
            name=name,
            wanted=wanted.__name__,
            found=found.__name__,
        )
    check_transformer(family, recipe, backbone)


def _read_network(family: Family, config: Mapping[str, Any], like: Transformer) -> Transformer:
    """Our network without the enhanced mask decoder, because transformers does not compute it."""
    said = _UNSAID | dict(config)
    kinds = said["pos_att_type"] or []
    said["pos_att_type"] = sorted(kinds.split("|") if isinstance(kinds, str) else kinds)
    tied = {} if said["legacy"] else {"tie_word_embeddings": True}  # the newer head does not have its own weights
    check_only(said, _DISTANCES | tied)
    made = read_transformer(family, said, like)
    check_only(said, {"embedding_size": made.width})
    require(
        said.get("type_vocab_size") != 1,
        "config.json says type_vocab_size=1, the backbone here can only do 0, or 2 and more: choose another checkpoint",
    )
    reach = said["max_relative_positions"]
    return replace(made, attention=Disentangled(reach if reach > 0 else made.length), decoder=None)


def _adjust(source: HFFolder, backbone: Any, heads: Heads) -> Adjusted:
    """Adjust the tensors. Both versions of the head that predicts tokens get the same names."""
    new = {name: _NEW_HEAD.get(name, name) for name in source.tensors}
    renamed = replace(
        source,
        tensors={new[name]: tensor for name, tensor in source.tensors.items()},
        written={new[name]: written for name, written in source.written.items()},
    )
    return adjust_tensors.adjust(renamed, backbone, heads)


def _more_config(backbone: Any) -> dict[str, Any]:
    return {"max_relative_positions": backbone.attention.reach, "type_vocab_size": backbone.segments}


def _finish(tensors: dict[str, Tensor], backbone: Any) -> dict[str, Tensor]:
    """Drop the segment table if the network has no segments."""
    return {name: tensor for name, tensor in tensors.items() if backbone.segments or name != FAMILY.names.segment}


_VALUES: Any = {Disentangled: {"reach": "written"}, MaskDecoder: {"steps": "left out"}}
FAMILY = Family(
    model_type="deberta",
    recipe=deberta,
    config=Config(
        bert_layers.FIELDS | {"segments": ("type_vocab_size", 0), "epsilon": ("layer_norm_eps", 1e-7)},
        label_dropout=("cls_dropout", None),
        always={**_DISTANCES, "pooler_hidden_act": "gelu", "pooler_dropout": 0.0, "legacy": True},
        only={"talking_head": False},
        only_label={"pooler_hidden_act": "gelu"},
        types=_TYPES,
    ),
    names=replace(
        _BERT,
        network=_NETWORK,
        block=_BLOCK,
        label=layers({"dense": "pooler.dense", "out": "classifier"}),
        sentence={},
    ),
    architectures={
        (): "DebertaModel",
        ("tokens",): "DebertaForMaskedLM",
        ("label",): "DebertaForSequenceClassification",
        ("tags",): "DebertaForTokenClassification",
        ("span",): "DebertaForQuestionAnswering",
    },
    claims=_claims,
    pooler="gelu",
    values=_VALUES,
    read_network=_read_network,
    adjust=_adjust,
    check=_check,
    more_config=_more_config,
    finish=_finish,
)
