"""See: who may see whom, as one whole number per token.

A key is visible to a query iff both belong to the same example and the key's rank is not greater than the query's.
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
    """What all views have in common."""

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
    """Every token sees itself and what stands before it (GPT)."""

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
    """Every token sees itself and what stands after it."""

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"right"})

    def rank(self, batch: Batch) -> Tensor:
        return -batch.position


@dataclass(frozen=True)
class Prefix(View):
    """The first text sees itself whole; the second sees the first, and its own tokens from left to right (UniLM)."""

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
    """Targets and special tokens come in a random order, after all that is given; each sees what came before it (XLNet).

    Orders are drawn within blocks of a row, one block after the other; what is given of any block is seen by all, but a
    row's first part, which a memory will keep, never sees the second.
    """

    block: int | None = None  # tokens in a block; none: the whole row

    def __post_init__(self) -> None:
        require(self.block is None or self.block >= 1, f"see.block must be none or 1 or more tokens, got {self.block}")

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("second stream", "what it predicts is visible in the text"),
            Need("targets:tokens", "it puts what is predicted at the end of an order"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"order"})

    @property
    def reading(self) -> See:
        return Everything()  # what `apply` does with rows whose order was not drawn: the content stream alone

    def draw(self, batch: Batch, seed: int) -> Batch:
        place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        key = chance.draw(place, seed, batch.row[:, None], batch.visit[:, None], chance.purpose("order"))
        size = self.block or batch.shape[1]
        number = key.argsort(1).argsort(1) + place // size * batch.shape[1]  # within a block at random
        return batch.replace(order=number.argsort(1).argsort(1))

    def rank(self, batch: Batch) -> Tensor:
        """Within each part: what is given 0, all else its place in the order, from 1. Without an order all is given."""
        if batch.order is None:
            return Everything().rank(batch)
        targets, (rows, length) = batch.targets["tokens"], batch.shape
        where = torch.where(targets.weight > 0, targets.where, rows * length)
        predicted = torch.zeros(rows * length + 1, dtype=torch.bool, device=where.device).scatter(0, where, True)
        given = batch.text & ~predicted[:-1].view(rows, length)
        place = torch.arange(length, device=where.device)
        part = (place >= (batch.reuse or length)).long() * (length + 1)
        return part + torch.where(given, 0, batch.order + 1)


def visible(batch: Batch) -> Tensor:
    """B T T: may the query (second) see the key (third)? Padding sees the padding of its row and nothing else."""
    assert batch.rank is not None, "see has not been applied"
    same = batch.example[:, :, None] == batch.example[:, None, :]
    return same & (batch.rank[:, None, :] <= batch.rank[:, :, None])


def visible_before(batch: Batch) -> Tensor:
    """B T T: may the query see the key without seeing itself, or any token of its own rank (XLNet's query stream)?"""
    assert batch.rank is not None, "see has not been applied"
    same = batch.example[:, :, None] == batch.example[:, None, :]
    return same & (batch.rank[:, None, :] < batch.rank[:, :, None])
