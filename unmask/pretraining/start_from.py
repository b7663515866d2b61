"""Continue from an earlier run, on new text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from unmask.errors import require
from unmask.infer.model import Model
from unmask.pretraining.mixture import Mixture
from unmask.recipe import Recipe
from unmask.system import with_network_of
from unmask.train import checkpoint

_SEGMENTS = "backbone.embed.segment.weight"


def continued(recipe: Recipe, base: Model, mixture: Mixture) -> Recipe:
    """The recipe with the network of an earlier run. That run and the data must have the same tokenizer."""
    require(
        base.recipe.tune is None or base.recipe.tune.plain and not base.recipe.tune.alone,
        "{folder} was tuned with {tune}: continue from the run that it was tuned from",
        folder=base.folder,
        tune=type(base.recipe.tune).__name__,
    )
    require(
        base.tokenizer.checksum == mixture.tokenizer.checksum,
        (
            "{folder} was made with another tokenizer than {folder_2}: prepare the text again with --tokenizer "
            "{folder_2}/tokenizer.json"
        ),
        folder=mixture.shards[0].folder,
        folder_2=base.folder,
    )
    return with_network_of(recipe, base.recipe)


def inherit(system: Any, base: Model, recipe: Recipe) -> list[str]:
    """Copy all weights that both networks have. A new segment starts as a copy of the segment it replaces in the layout.

    A head that had other labels is not copied: its outputs would mean something else. Returns notices about the other weights."""
    new_heads = list(_other_labels(base.recipe, recipe))
    missing, left = checkpoint.load_weights(
        system, base.folder / checkpoint.WEIGHTS, partly=True, without=[f"predict.{name}" for name in new_heads]
    )
    before, now = base.system.backbone.embed.segment, system.backbone.embed.segment
    if before is not None and len(now.weight) > len(before.weight):
        with torch.no_grad():
            now.weight.copy_(before.weight[_like(recipe, len(now.weight))])
        missing, left = ([name for name in names if name != _SEGMENTS] for names in (missing, left))
    frozen = {name for name, _ in system.named_buffers()}  # vectors of entities, which are not random
    missing = [name for name in missing if name not in frozen]
    new = (
        [f"{base.folder} does not have these modules, so they start with random weights: {_owners(missing)}"]
        if missing
        else []
    )
    new += [
        f"the track {name} has other labels than in {base.folder}, so its head starts with random weights"
        for name in new_heads
    ]
    return [*new, *([f"this run does not use these modules of {base.folder}: {_owners(left)}"] if left else [])]


def _other_labels(before: Recipe, now: Recipe) -> Iterator[str]:
    """The tracks of both recipes whose tasks have other labels."""
    for name, task in now.tasks.items():
        if name in before.tasks and before.tasks[name].labels != task.labels:
            yield name


def _like(recipe: Recipe, count: int) -> list[int]:
    """For each segment of the network, the segment of the layout that it replaces."""
    found = {number: number for number in range(count)}
    for track in recipe.tracks.values():
        found |= {number: segment for segment, number in reversed(list(enumerate(track.segments)))}
    return [found[number] for number in range(count)]


def about_rate(recipe: Recipe, base: Model) -> str:
    optimise: Any = recipe.optimise
    return (
        f"this run continues from {base.folder} at a learning rate of {optimise.rate:.2g} after a warmup of {optimise.warmup:.0%} of the "
        "steps: set optimise.rate and optimise.warmup to change them"
    )


def _owners(names: list[str]) -> str:
    """The names of the modules that these tensors belong to, each once."""
    return ", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in names))
