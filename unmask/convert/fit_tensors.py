"""Fit: the tensors of a checkpoint cut and added up to what our network has; what is cut off or fresh is listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from unmask.convert import config as configs
from unmask.convert.config import Backbone
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import NAMES, Heads
from unmask.errors import require


@dataclass(frozen=True)
class Fitted:
    """A checkpoint that fits our network."""

    source: HFFolder
    cut: list[str]  # rows of tensors that have no place
    fresh: list[str]  # rows of tensors of ours that the checkpoint does not have


def fit(source: HFFolder, backbone: Backbone, heads: Heads) -> Fitted:
    """The checkpoint with one row per token, our first position in the first row, and nothing twice."""
    source, rows = _vocabulary(source)
    source, tasks = _positions(source, backbone)
    source = _without_copy(_without_map(source, backbone), heads)
    source, fresh = _with_added(source, backbone.deviation)
    return Fitted(source, rows + tasks, fresh)


def _vocabulary(source: HFFolder) -> tuple[HFFolder, list[str]]:
    """One row per token: rows that no token has (tables are padded to round numbers) are cut off, and listed."""
    called = NAMES[source.kind]
    size, rows = source.tokenizer.vocabulary.size - source.added, len(source.tensors[called.token])
    highest = max(source.tokenizer.backend.get_vocab().values())
    require(
        highest < size + source.added,
        f"the tokenizer has {size:,} tokens and numbers them up to {highest:,}: "
        "give every number a token in tokenizer.json",
    )
    require(
        size <= rows,
        f"the tokenizer has {size:,} tokens and the checkpoint {rows:,} embeddings: save it anew after "
        f"model.resize_token_embeddings({size})",
    )
    long = [name for name in called.per_token if name in source.tensors and len(source.tensors[name]) > size]
    tensors = source.tensors | {name: source.tensors[name][:size] for name in long}
    return replace(source, tensors=tensors), [f"{source.written[name]}[{size}:]" for name in long]


def _with_added(source: HFFolder, deviation: float) -> tuple[HFFolder, list[str]]:
    """With a random row for each special token that was added to the tokenizer."""
    called, random = NAMES[source.kind], torch.Generator().manual_seed(0)
    if not source.added:
        return source, []
    tables = {called.token: "backbone.embed.token.weight", called.output: "predict.tokens.weight"}
    found = {name: source.tensors[name] for name in tables if name in source.tensors}
    more = {
        name: torch.cat((table, torch.randn(source.added, table.shape[1], generator=random) * deviation))
        for name, table in found.items()
    }
    return replace(source, tensors=source.tensors | more), [f"{tables[n]}[{len(t)}:]" for n, t in found.items()]


def _positions(source: HFFolder, backbone: Backbone) -> tuple[HFFolder, list[str]]:
    """Our first position in the first row; a segment that tells nothing apart, and the first task, in every position."""
    tensors, called, cut = dict(source.tensors), NAMES[source.kind], []
    if called.position is None or called.position not in tensors:
        return source, []
    table = tensors[called.position][configs.offset(source.kind, configs.pad(source.kind, source.config)) :]
    if not backbone.segments and called.segment in tensors:
        table = table + tensors.pop(called.segment)[0]
    if called.task and source.config.get("use_task_id"):
        require(
            called.task in tensors,
            f"config.json says use_task_id=true, and the checkpoint has no {called.task}: download it again",
        )
        table, cut = table + tensors.pop(called.task)[0], [f"{source.written[called.task]}[1:]"]
    return replace(source, tensors=tensors | {called.position: table}), cut


def _without_map(source: HFFolder, backbone: Backbone) -> HFFolder:
    """Without a map of the embeddings that changes nothing; where widths are equal, our network has no other."""
    names = [NAMES[source.kind].inside(f"project.{which}") for which in ("weight", "bias")]
    found = [source.tensors[name] for name in names if name in source.tensors]
    if not found or backbone.embedding is not None:
        return source
    require(
        torch.equal(found[0], torch.eye(backbone.width)) and not found[-1].any(),
        f"the checkpoint maps embeddings of width {backbone.width} to layers of that width, and the backbone here maps "
        "only between widths that differ: choose a checkpoint whose embedding_size is not its hidden_size",
    )
    return _kept(source, lambda name: name not in names)


def _without_copy(source: HFFolder, heads: Heads) -> HFFolder:
    """Without tied output weights that the file repeats; if they differ, they stay and are reported as left over."""
    called = NAMES[source.kind]
    output = source.tensors.get(called.output)
    if not heads.tied or output is None or not torch.equal(output, source.tensors[called.token]):
        return source
    return _kept(source, lambda name: name != called.output)


def _kept(source: HFFolder, keep: Callable[[str], bool]) -> HFFolder:
    return replace(source, tensors={name: tensor for name, tensor in source.tensors.items() if keep(name)})
