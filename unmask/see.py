"""See: which tokens each token sees, as one integer (its rank) per token.

A query sees a key if both belong to the same example and the key's rank is not larger than the query's rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask import chance
from unmask.axes import Need, Part, Pattern, See
from unmask.batch import Batch
from unmask.errors import require


class View(Part):
    """Base class of views: no random order, and no pattern that a faster kernel could use."""

    @property
    def pattern(self) -> Pattern:
        return "ranked"

    @property
    def reading(self) -> See:
        return self

    def draw(self, batch: Batch, seed: int) -> Batch:
        return batch

    def apply(self, batch: Batch) -> Batch:
        return batch.replace(rank=self.rank(batch))

    def rank(self, batch: Batch) -> Tensor:
        """B T, the rank of every token."""
        raise NotImplementedError


@dataclass(frozen=True)
class Everything(View):
    """Every token sees its whole example (BERT)."""

    @property
    def pattern(self) -> Pattern:
        return "everything"

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"both sides"})

    def rank(self, batch: Batch) -> Tensor:
        return torch.zeros_like(batch.position)


@dataclass(frozen=True)
class LeftToRight(View):
    """Every token sees itself and the tokens before it (GPT)."""

    @property
    def pattern(self) -> Pattern:
        return "left"

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"left", "future hidden"})

    def rank(self, batch: Batch) -> Tensor:
        return batch.position


@dataclass(frozen=True)
class RightToLeft(View):
    """Every token sees itself and the tokens after it."""

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"right", "past hidden"})

    def rank(self, batch: Batch) -> Tensor:
        return -batch.position


@dataclass(frozen=True)
class Prefix(View):
    """The first text sees all of itself. The second sees the first, and its own tokens from left to right (UniLM)."""

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pairs", "it shows the second of two texts from left to right"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"prefix"})

    def rank(self, batch: Batch) -> Tensor:
        return torch.where(batch.segment > 0, batch.position, 0)


@dataclass(frozen=True)
class Permuted(View):
    """Tokens are read in a random order, and each sees those before it in this order (XLNet).

    The context (all tokens of the text that are not targets) comes first. Targets and special tokens follow, in random
    order within blocks of the row, block after block. Every token sees the context of all blocks, with one exception:
    the first part of a row, which goes into the memory, never sees the second part.
    """

    block: int | None = None  # tokens in a block; none: the whole row is one block

    def __post_init__(self) -> None:
        require(
            self.block is None or self.block >= 1,
            "see.block must be none or 1 or more tokens, got {block}",
            block=self.block,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("second stream", "its targets stay visible in the text"),
            Need("targets:tokens", "it puts predicted tokens at the end of a random order"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"order"})

    @property
    def reading(self) -> See:
        return Everything()  # a finished model has no targets: it uses the content stream only

    def draw(self, batch: Batch, seed: int) -> Batch:
        place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        key = chance.draw(place, seed, batch.row[:, None], batch.visit[:, None], chance.purpose("order"))
        size = self.block or batch.shape[1]
        number = key.argsort(1).argsort(1) + place // size * batch.shape[1]  # random only within a block
        return batch.replace(order=number.argsort(1).argsort(1))

    def rank(self, batch: Batch) -> Tensor:
        """B T. Within each part of a row: 0 for the context, the place in the order, from 1, for other tokens.

        Without an order, everything is context."""
        if batch.order is None:
            return Everything().rank(batch)
        targets, (rows, length) = batch.targets["tokens"], batch.shape
        where = torch.where(targets.weight > 0, targets.where, rows * length)
        predicted = torch.zeros(rows * length + 1, dtype=torch.bool, device=where.device).scatter(0, where, True)
        context = batch.text & ~predicted[:-1].view(rows, length)
        place = torch.arange(length, device=where.device)
        part = (place >= (batch.reuse or length)).long() * (length + 1)
        return part + torch.where(context, 0, batch.order + 1)


def visible(batch: Batch) -> Tensor:
    """B T T, True where the query (second dimension) sees the key (third). Padding sees only the padding of its row."""
    assert batch.rank is not None, "see has not been applied"
    same = batch.example[:, :, None] == batch.example[:, None, :]
    return same & (batch.rank[:, None, :] <= batch.rank[:, :, None])


def near(query: Tensor, key: Tensor, window: int) -> Tensor:
    """B Q K, True where a query and a key are at most `window` positions apart. `query`, `key`: positions, B Q and B K.

    It is one more term of the rule, for layers that see only a part of the text."""
    return (query[:, :, None] - key[:, None, :]).abs() <= window


def visible_before(batch: Batch) -> Tensor:
    """B T T, the same without the query itself and other tokens of its rank (XLNet's query stream)."""
    assert batch.rank is not None, "see has not been applied"
    same = batch.example[:, :, None] == batch.example[:, None, :]
    return same & (batch.rank[:, None, :] < batch.rank[:, :, None])
