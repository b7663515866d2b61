"""Old Transformer-XL checkpoints: their tensors as our network has them; frequent and rare tokens are in clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from unmask.backbone import TransformerXL
from unmask.convert.fit_tensors import Fitted
from unmask.convert.hf_folder import HFFolder
from unmask.errors import require

_TABLES, _MAPS = "transformer.word_emb.emb_layers", "transformer.word_emb.emb_projs"
_OUTPUTS, _OUTPUT_MAPS = "crit.out_layers", "crit.out_projs"


def own(source: HFFolder) -> tuple[int, ...]:
    """The clusters whose output projection is not that of their embeddings: in released checkpoints the first."""
    found = [i for i in range(len(_tables(source.tensors))) if f"{_OUTPUT_MAPS}.{i}" in source.tensors]
    return tuple(i for i in found if not _same(source.tensors, f"{_OUTPUT_MAPS}.{i}", f"{_MAPS}.{i}"))


def fit(source: HFFolder, backbone: TransformerXL, tied: bool) -> Fitted:
    """The checkpoint with queries apart, one table per cluster, our order of clusters, and nothing twice."""
    tensors = dict(source.tensors)
    _check_vocabulary(source)
    _queries_apart(tensors)
    if backbone.shared_biases:
        _shared_biases(tensors)
    if backbone.cutoffs:
        require(
            tied,
            "config.json says tie_word_embeddings=false, and clusters here have one table for input and output: choose "
            "another checkpoint",
        )
        _tables_apart(tensors, (0, *backbone.cutoffs, source.tokenizer.vocabulary.size))
        for name in ("crit.cluster_weight", "crit.cluster_bias"):
            if name in tensors:  # the last of theirs is the first cluster
                tensors[name] = tensors[name].flip(0)
    require(
        bool(backbone.cutoffs) or f"{_MAPS}.0" not in tensors,
        f"the checkpoint has no clusters and maps its embeddings ({_MAPS}.0), the backbone here maps those of clusters "
        "alone: choose a checkpoint with div_val=1, or with cutoffs",
    )
    _without_copies(tensors, tied)
    written = {name: source.written.get(_origin(name), _origin(name)) for name in tensors}
    return Fitted(replace(source, tensors=tensors, written=written), [], [])


def _tables(tensors: dict[str, Tensor]) -> list[str]:
    return [name for name in tensors if name.startswith(f"{_TABLES}.")]


def _origin(name: str) -> str:
    """The tensor of theirs that one was made of."""
    return name.replace(".q_net.", ".qkv_net.").replace(".kv_net.", ".qkv_net.")


def _same(tensors: dict[str, Tensor], one: str, other: str) -> bool:
    return one in tensors and other in tensors and torch.equal(tensors[one], tensors[other])


def _check_vocabulary(source: HFFolder) -> None:
    size, rows = source.tokenizer.vocabulary.size, sum(len(source.tensors[name]) for name in _tables(source.tensors))
    require(
        size == rows,
        f"the tokenizer has {size:,} tokens and the checkpoint {rows:,} embeddings: give it the tokenizer.json of its "
        "own vocabulary",
    )


def _queries_apart(tensors: dict[str, Tensor]) -> None:
    for name in [name for name in tensors if name.endswith("dec_attn.qkv_net.weight")]:
        whole = tensors.pop(name)
        third = len(whole) // 3
        tensors[name.replace("qkv_net", "q_net")] = whole[:third]
        tensors[name.replace("qkv_net", "kv_net")] = whole[third:]


def _shared_biases(tensors: dict[str, Tensor]) -> None:
    """Biases that all layers share, at the first layer alone; a file has them once, or once more for each layer."""
    for name in ("r_w_bias", "r_r_bias"):
        copies = [copy for copy in tensors if copy == f"transformer.{name}" or copy.endswith(f"dec_attn.{name}")]
        found = [tensors.pop(copy) for copy in copies]
        if found:
            tensors[f"transformer.layers.0.dec_attn.{name}"] = found[0]


def _tables_apart(tensors: dict[str, Tensor], edges: tuple[int, ...]) -> None:
    """One table per cluster, each with a projection, where the file has one table of one width for all."""
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
    """Without tied tensors that the file repeats; if they differ, they stay."""
    for table in _tables(tensors):
        number = table.removeprefix(f"{_TABLES}.").split(".")[0]
        if tied and _same(tensors, table, f"{_OUTPUTS}.{number}.weight"):
            del tensors[f"{_OUTPUTS}.{number}.weight"]
        if _same(tensors, f"{_MAPS}.{number}", f"{_OUTPUT_MAPS}.{number}"):
            del tensors[f"{_OUTPUT_MAPS}.{number}"]
