"""Transformer-XL in Hugging Face's old format: import only, because transformers no longer has this class."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from unmask.backbone import TransformerXL
from unmask.convert import relative_config
from unmask.convert.adjust_tensors import Adjusted
from unmask.convert.family import Config, Family
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads, Names, layers
from unmask.convert.token_head import token_head
from unmask.errors import UserError, require
from unmask.predict import Adaptive, Tokens
from unmask.recipe import Recipe
from unmask.recipes import transformer_xl

_FIELDS: dict[str, tuple[str, Any]] = {
    "layers": ("n_layer", 18),
    "width": ("d_model", 1024),
    "heads": ("n_head", 16),
    "head": ("d_head", 64),
    "feedforward": ("d_inner", 4096),
    "memory": ("mem_len", 1600),
    "clamp": ("clamp_len", 1000),
    "cutoffs": ("cutoffs", (20_000, 40_000, 200_000)),
    "divide": ("div_val", 4),
    "dropout": ("dropout", 0.1),
    "epsilon": ("layer_norm_epsilon", 1e-5),
    "deviation": ("init_std", 0.02),
    "projection_deviation": ("proj_init_std", 0.01),
}
READ_WORDS = {
    "vocab.pkl": 'pickle.load(open("vocab.pkl", "rb"))',
    "vocab.bin": 'torch.load("vocab.bin", weights_only=False)',
}
# Words are separated by spaces, as in WikiText.
PICKLED_WORDS = {
    name: (
        "import pickle, torch, tokenizers as t; "
        f'made = t.Tokenizer(t.models.WordLevel(dict({read}["sym2idx"]), unk_token="<unk>")); '
        "made.pre_tokenizer = t.pre_tokenizers.WhitespaceSplit(); "
        'made.add_special_tokens(["<eos>", "<unk>"]); made.save("tokenizer.json")'
    )
    for name, read in READ_WORDS.items()
}

_TABLES, _MAPS = "transformer.word_emb.emb_layers", "transformer.word_emb.emb_projs"
_OUTPUTS, _OUTPUT_MAPS = "crit.out_layers", "crit.out_projs"


def _claims(recipe: Recipe, backbone: TransformerXL) -> str:
    return f"system.backbone=TransformerXL and see={type(recipe.see).__name__}"


def _check(family: Family, recipe: Recipe, backbone: TransformerXL) -> None:
    raise UserError(
        (
            "Hugging Face has no Transformer-XL any more, and its XLNet sees both sides, got "
            "system.backbone=TransformerXL and see={see_kind}: use the run folder as it is"
        ),
        see_kind=type(recipe.see).__name__,
    )


def _token_head(source: HFFolder, backbone: TransformerXL, tied: bool) -> Tokens | Adaptive:
    return Adaptive(own=_own(source)) if backbone.cutoffs else token_head(source, backbone, tied)


def _own(source: HFFolder) -> tuple[int, ...]:
    """The clusters whose output projection differs from that of their embeddings: in released checkpoints, the first."""
    found = [i for i in range(len(_tables(source.tensors))) if f"{_OUTPUT_MAPS}.{i}" in source.tensors]
    return tuple(i for i in found if not _same(source.tensors, f"{_OUTPUT_MAPS}.{i}", f"{_MAPS}.{i}"))


def _adjust(source: HFFolder, backbone: TransformerXL, heads: Heads) -> Adjusted:
    """The checkpoint with separate queries, one table per cluster, our order of clusters, and no repeated tensors."""
    tensors = dict(source.tensors)
    _check_vocabulary(source)
    _queries_apart(tensors)
    if backbone.shared_biases:
        _shared_biases(tensors)
    if backbone.cutoffs:
        require(
            heads.tied,
            "config.json says tie_word_embeddings=false, and clusters here have one table for input and output: choose "
            "another checkpoint",
        )
        _tables_apart(tensors, (0, *backbone.cutoffs, source.tokenizer.vocabulary.size))
        for name in ("crit.cluster_weight", "crit.cluster_bias"):
            if name in tensors:  # their last row is our first cluster
                tensors[name] = tensors[name].flip(0)
    require(
        bool(backbone.cutoffs) or f"{_MAPS}.0" not in tensors,
        (
            "the checkpoint has no clusters and maps its embeddings ({maps}.0), the backbone here maps those of "
            "clusters alone: choose a checkpoint with div_val=1, or with cutoffs"
        ),
        maps=_MAPS,
    )
    _without_copies(tensors, heads.tied)
    written = {name: source.written.get(_origin(name), _origin(name)) for name in tensors}
    return Adjusted(replace(source, tensors=tensors, written=written), [], [])


def _tables(tensors: dict[str, Tensor]) -> list[str]:
    return [name for name in tensors if name.startswith(f"{_TABLES}.")]


def _origin(name: str) -> str:
    """The name of the Hugging Face tensor that a tensor was made from."""
    return name.replace(".q_net.", ".qkv_net.").replace(".kv_net.", ".qkv_net.")


def _same(tensors: dict[str, Tensor], one: str, other: str) -> bool:
    return one in tensors and other in tensors and torch.equal(tensors[one], tensors[other])


def _check_vocabulary(source: HFFolder) -> None:
    size, rows = source.tokenizer.vocabulary.size, sum(len(source.tensors[name]) for name in _tables(source.tensors))
    require(
        size == rows,
        (
            "the tokenizer has {size:,} tokens and the checkpoint {rows:,} embeddings: give it the tokenizer.json "
            "of its own vocabulary"
        ),
        size=size,
        rows=rows,
    )


def _queries_apart(tensors: dict[str, Tensor]) -> None:
    for name in [name for name in tensors if name.endswith("dec_attn.qkv_net.weight")]:
        whole = tensors.pop(name)
        third = len(whole) // 3
        tensors[name.replace("qkv_net", "q_net")] = whole[:third]
        tensors[name.replace("qkv_net", "kv_net")] = whole[third:]


def _shared_biases(tensors: dict[str, Tensor]) -> None:
    """Put the biases that all layers share at the first layer. A file has them once, or a copy for each layer."""
    for name in ("r_w_bias", "r_r_bias"):
        copies = [copy for copy in tensors if copy == f"transformer.{name}" or copy.endswith(f"dec_attn.{name}")]
        found = [tensors.pop(copy) for copy in copies]
        if found:
            tensors[f"transformer.layers.0.dec_attn.{name}"] = found[0]


def _tables_apart(tensors: dict[str, Tensor], edges: tuple[int, ...]) -> None:
    """Split the table into one per cluster, each with a projection, if the file has one table for all clusters."""
    if len(_tables(tensors)) > 1:
        return
    table = tensors.pop(f"{_TABLES}.0.weight")
    output = {
        which: tensors.pop(f"{_OUTPUTS}.0.{which}")
        for which in ("weight", "bias")
        if f"{_OUTPUTS}.0.{which}" in tensors
    }
    for number, (begin, end) in enumerate(pairwise(edges)):
        tensors[f"{_TABLES}.{number}.weight"] = table[begin:end]
        tensors[f"{_MAPS}.{number}"] = torch.eye(table.shape[1])
        tensors |= {f"{_OUTPUTS}.{number}.{which}": whole[begin:end] for which, whole in output.items()}


def _without_copies(tensors: dict[str, Tensor], tied: bool) -> None:
    """Drop tied tensors that the file repeats. If they differ, they stay."""
    for table in _tables(tensors):
        number = table.removeprefix(f"{_TABLES}.").split(".")[0]
        if tied and _same(tensors, table, f"{_OUTPUTS}.{number}.weight"):
            del tensors[f"{_OUTPUTS}.{number}.weight"]
        if _same(tensors, f"{_MAPS}.{number}", f"{_OUTPUT_MAPS}.{number}"):
            del tensors[f"{_OUTPUT_MAPS}.{number}"]


FAMILY = Family(
    model_type="transfo-xl",
    recipe=transformer_xl,
    config=Config(
        _FIELDS, attention_dropout=None, only={"pre_lnorm": False, "attn_type": 0}, types=relative_config.TYPES
    ),
    names=Names(
        prefix="transformer.",
        network={
            "embed.token.weight": ("word_emb.emb_layers.0.weight",),
            "embed.token.tables.{}": ("word_emb.emb_layers.{}.weight",),
            "embed.token.projections.{}": ("word_emb.emb_projs.{}",),
        },
        place="layers.{}",
        block={
            "attention.query.weight": ("dec_attn.q_net.weight",),
            "attention.key_value.weight": ("dec_attn.kv_net.weight",),
            "attention.place.weight": ("dec_attn.r_net.weight",),
            "attention.out.weight": ("dec_attn.o_net.weight",),
            "attention.content_bias": ("dec_attn.r_w_bias",),
            "attention.place_bias": ("dec_attn.r_r_bias",),
            **layers({
                "attention_norm": "dec_attn.layer_norm",
                "mlp.up": "pos_ff.CoreNet.0",
                "mlp.down": "pos_ff.CoreNet.3",
                "mlp_norm": "pos_ff.layer_norm",
            }),
        },
        tokens={
            "weight": ("crit.out_layers.0.weight",),
            "bias": ("crit.out_layers.0.bias",),
            "bias.{}": ("crit.out_layers.{}.bias",),
            "projections.{}": ("crit.out_projs.{}",),
            "cluster": ("crit.cluster_weight",),
            "cluster_bias": ("crit.cluster_bias",),
        },
        label={},
        computed=r"\bpos_emb\.inv_freq$",
        others=("r_w_bias", "r_r_bias"),
    ),
    architectures={(): "TransfoXLModel", ("tokens",): "TransfoXLLMHeadModel"},
    claims=_claims,
    network=TransformerXL,
    network_values={},
    sees="left",
    predicts="next",
    transform=None,
    pooler=None,
    summary="last",
    pickled_words=PICKLED_WORDS,
    values=relative_config.VALUES,
    read_network=relative_config.read_network,
    adjust=_adjust,
    token_head=_token_head,
    token_tables=lambda backbone: len(backbone.cutoffs) + 1 if backbone.cutoffs else 0,
    notes=relative_config.notes,
    check=_check,
)  # fmt: skip
