"""Tensors with one row for each token of the vocabulary: how they grow when tokens are added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from unmask.batch import Vocabulary
from unmask.errors import require
from unmask.recipe import Recipe


def with_tokens(recipe: Recipe, system: Any, vocabulary: Vocabulary, pieces: Sequence[Sequence[int]]) -> Any:
    """A system for a vocabulary with new tokens at its end, and the weights of `system`.

    `pieces`: for each new token the ids of the old tokens that it replaces. Its rows start as the mean of their rows; its
    entries in tables that are not trained stay as they are built."""
    for name, network in recipe.system.networks.items():
        require(
            "one table" in network.gives,
            "the vocabulary of {recipe} cannot grow, because the embeddings of its {name} are in clusters by how frequent "
            "tokens are: train a new model with a new tokenizer",
            recipe=recipe.name,
            name=name,
        )
    found = recipe.system.build(recipe, vocabulary, 0)
    by_token = {id(tensor) for tensor in token_tensors(found)}
    before, old_size = dict(system.state_dict()), vocabulary.size - len(pieces)
    with torch.no_grad():
        for name, value in found.state_dict(keep_vars=True).items():
            old = before[name]
            if id(value) in by_token:
                value[:old_size] = old
                for number, those in enumerate(pieces if value.is_floating_point() else (), old_size):
                    value[number] = old[list(those)].mean(0)
                continue
            require(
                value.shape == old.shape,
                "the vocabulary of {recipe} cannot grow, because its tensor {name} depends on the vocabulary in a way that "
                "its part does not declare: name it in `token_rows` of the part's module",
                recipe=recipe.name,
                name=name,
            )
            value.copy_(old)
    return found


def token_biases(system: nn.Module) -> list[Tensor]:
    """The bias of every output that predicts tokens."""
    return [tensor for tensor in token_tensors(system, only="bias") if tensor.dim() == 1]


def token_tensors(system: nn.Module, only: str | None = None) -> Iterator[Tensor]:
    """Every tensor that a module declares in `token_rows`; `only`: those of this name. Tied tensors come more than once."""
    for module in system.modules():
        for name in getattr(module, "token_rows", ()):
            if only not in (None, name):
                continue
            tensor = attrgetter(name)(module)
            if tensor is not None:
                yield tensor
