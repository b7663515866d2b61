"""Import: a Hugging Face folder becomes a run folder, with a report of what was loaded, missing and left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from unmask.backbone import Transformer
from unmask.convert import config as configs
from unmask.convert import names
from unmask.convert.names import Heads, Link
from unmask.convert.recipe_in import heads_of, recipe_of
from unmask.convert.source import Source, read
from unmask.errors import require
from unmask.infer.model import Model, save_run
from unmask.train import checkpoint


@dataclass(frozen=True)
class Report:
    """What became of a checkpoint."""

    architecture: str  # Hugging Face's name for it
    recipe: str  # the recipe that it goes on with
    loaded: int  # tensors of the run that came from the file
    parameters: int  # numbers in them
    missing: tuple[str, ...]  # tensors of the run that the file does not have: they are fresh
    left_over: tuple[str, ...]  # tensors of the file, or rows of them, that the run has no place for


def import_hf(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> Report:
    """Read a local Hugging Face folder; write a run folder, to be used, adapted or trained on."""
    source = read(Path(folder))
    heads = heads_of(source)
    recipe = recipe_of(source, heads)
    backbone: Transformer = recipe.system.backbone  # type: ignore[attr-defined]
    source, cut = _fit_vocabulary(source)
    source = _without_copy(_fit_positions(source, backbone), heads)
    system = recipe.system.build(recipe, source.tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    loaded = _fill(system, names.links(source.kind, backbone.layers, backbone.segments, heads), source.tensors)
    save_run(Model(system.eval(), recipe, source.tokenizer, Path(out)), out, overwrite=overwrite)
    used = {name for link in loaded for name in link.theirs}
    wanted = checkpoint.unique(system)
    return Report(
        architecture=source.architecture or names.architecture(source.kind, heads),
        recipe=recipe.name,
        loaded=len(loaded),
        parameters=sum(wanted[link.ours].numel() for link in loaded),
        missing=tuple(sorted(wanted.keys() - {link.ours for link in loaded})),
        left_over=tuple(sorted(cut + [source.written[name] for name in source.tensors.keys() - used])),
    )


def _fit_vocabulary(source: Source) -> tuple[Source, list[str]]:
    """One row per token: rows that no token has (tables are padded to round numbers) are cut off, and listed."""
    size, rows = source.tokenizer.vocabulary.size, len(source.tensors[names.embedding(source.kind)])
    highest = max(source.tokenizer.backend.get_vocab().values())
    require(
        highest < size,
        f"the tokenizer has {size:,} tokens and numbers them up to {highest:,}: "
        "give every number a token in tokenizer.json",
    )
    require(
        size <= rows,
        f"the tokenizer has {size:,} tokens and the checkpoint {rows:,} embeddings: save it anew after "
        f"model.resize_token_embeddings({size})",
    )
    long = [
        name for name in names.per_token(source.kind) if name in source.tensors and len(source.tensors[name]) > size
    ]
    tensors = source.tensors | {name: source.tensors[name][:size] for name in long}
    return replace(source, tensors=tensors), [f"{source.written[name]}[{size}:]" for name in long]


def _fit_positions(source: Source, backbone: Transformer) -> Source:
    """Our first position in the first row; a segment that tells nothing apart is added to every position."""
    tensors, name = dict(source.tensors), names.position(source.kind)
    if name in tensors:
        tensors[name] = tensors[name][configs.offset(source.kind, configs.pad(source.kind, source.config)) :]
        if not backbone.segments and names.segment(source.kind) in tensors:
            tensors[name] = tensors[name] + tensors.pop(names.segment(source.kind))[0]
    return replace(source, tensors=tensors)


def _without_copy(source: Source, heads: Heads) -> Source:
    """Without tied output weights that the file repeats; if they differ, they stay and are reported as left over."""
    output = source.tensors.get(names.output(source.kind))
    if not heads.tied or output is None or not torch.equal(output, source.tensors[names.embedding(source.kind)]):
        return source
    kept = {name: tensor for name, tensor in source.tensors.items() if name != names.output(source.kind)}
    return replace(source, tensors=kept)


def _fill(system: nn.Module, links: Sequence[Link], tensors: Mapping[str, Tensor]) -> list[Link]:
    """Put the tensors in their places; returns the links that were followed."""
    wanted = checkpoint.unique(system)
    loaded = [link for link in links if tensors.keys() >= set(link.theirs)]
    absent = [link for link in links if link not in loaded and link.ours.startswith("backbone.")]
    require(
        not absent,
        f"the checkpoint lacks {len(absent)} tensors of the network that its config.json describes, such as "
        f"{absent[0].theirs[0] if absent else ''}: download it again",
    )
    with torch.no_grad():
        for link in loaded:
            found, place = link.read(tensors), wanted[link.ours]
            require(
                found.shape == place.shape,
                f"{link.theirs[0]} makes a tensor of shape {tuple(found.shape)} and config.json one of "
                f"{tuple(place.shape)}: the two files do not belong together, download both again",
            )
            place.copy_(found)
    return loaded
