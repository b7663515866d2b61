"""Adjust the tensors of a checkpoint to our network: cut rows, add rows, sum tables. Cut and new rows are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from unmask.convert import config_json
from unmask.convert.names import Heads
from unmask.errors import require

if TYPE_CHECKING:
    from unmask.convert.hf_folder import HFFolder


@dataclass(frozen=True)
class Adjusted:
    """A checkpoint whose tensors fit our network, under Hugging Face's names."""

    source: HFFolder  # the checkpoint
    cut: list[str]  # rows of the checkpoint's tensors that our network has no place for
    fresh: list[str]  # rows of our tensors that the checkpoint does not have: their values are random


def adjust(source: HFFolder, backbone: Any, heads: Heads) -> Adjusted:
    """The checkpoint with one row per token, with our first position in the first row, and without repeated tensors."""
    source, rows = _vocabulary(source)
    source = _positions(source, backbone)
    source = _without_copy(_without_projection(source, backbone), heads)
    source, fresh = _with_added(source, backbone.deviation)
    return Adjusted(source, rows, fresh)


def _vocabulary(source: HFFolder) -> tuple[HFFolder, list[str]]:
    """One row per token. Rows without a token (tables are padded to round numbers) are cut and listed."""
    names = source.family.names
    size, rows = source.tokenizer.vocabulary.size - source.added, len(source.tensors[names.token])
    highest = max(source.tokenizer.backend.get_vocab().values())
    require(
        highest < size + source.added,
        (
            "the tokenizer has {size:,} tokens and numbers them up to {highest:,}: give every number a token in "
            "tokenizer.json"
        ),
        size=size,
        highest=highest,
    )
    require(
        size <= rows,
        (
            "the tokenizer has {size:,} tokens and the checkpoint {rows:,} embeddings: save it again after "
            "model.resize_token_embeddings({size})"
        ),
        size=size,
        rows=rows,
    )
    long = [name for name in names.per_token if name in source.tensors and len(source.tensors[name]) > size]
    tensors = source.tensors | {name: source.tensors[name][:size] for name in long}
    return replace(source, tensors=tensors), [f"{source.written[name]}[{size}:]" for name in long]


def _with_added(source: HFFolder, deviation: float) -> tuple[HFFolder, list[str]]:
    """Add a random row for each special token that was added to the tokenizer."""
    names, random = source.family.names, torch.Generator().manual_seed(0)
    if not source.added:
        return source, []
    tables = {names.token: f"backbone.{names.embed}token.weight", names.output: "predict.tokens.weight"}
    found = {name: source.tensors[name] for name in tables if name in source.tensors}
    more = {
        name: torch.cat((table, torch.randn(source.added, table.shape[1], generator=random) * deviation))
        for name, table in found.items()
    }
    return replace(source, tensors=source.tensors | more), [f"{tables[n]}[{len(t)}:]" for n, t in found.items()]


def _positions(source: HFFolder, backbone: Any) -> HFFolder:
    """Put our first position in the first row. If there is only one segment, its vector is added to every position."""
    tensors, family = dict(source.tensors), source.family
    segment, before = family.names.segment, family.position_offset(config_json.pad(family, source.config))
    for position in family.names.position_tables:
        if position in tensors:
            tensors[position] = tensors[position][before:]
            if not backbone.segments and segment in tensors:
                tensors[position] = tensors[position] + tensors.pop(segment)[0]
    return replace(source, tensors=tensors)


def _without_projection(source: HFFolder, backbone: Any) -> HFFolder:
    """Drop a projection of the embeddings that is the identity. If the widths are equal, our network has no projection."""
    names = [source.family.names.inside(f"project.{which}") for which in ("weight", "bias")]
    found = [source.tensors[name] for name in names if name in source.tensors]
    if not found or backbone.embedding is not None:
        return source
    require(
        torch.equal(found[0], torch.eye(backbone.width)) and not found[-1].any(),
        (
            "the checkpoint maps embeddings of width {width} to layers of that width, and the backbone here maps "
            "only between widths that differ: choose a checkpoint whose embedding_size is not its hidden_size"
        ),
        width=backbone.width,
    )
    return _keep(source, lambda name: name not in names)


def _without_copy(source: HFFolder, heads: Heads) -> HFFolder:
    """Drop tied output weights that the file repeats. If they differ, they stay and are reported as left over."""
    names = source.family.names
    output = source.tensors.get(names.output)
    if not heads.tied or output is None or not torch.equal(output, source.tensors[names.token]):
        return source
    return _keep(source, lambda name: name != names.output)


def _keep(source: HFFolder, keep: Callable[[str], bool]) -> HFFolder:
    return replace(source, tensors={name: tensor for name, tensor in source.tensors.items() if keep(name)})
