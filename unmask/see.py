"""See: who may see whom, as one whole number per token.

A key is visible to a query iff both belong to the same example and the key's rank is not greater than the query's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Batch
from unmask.errors import require

Pattern = Literal["everything", "left", "ranked"]  # what a kernel may rely on; "ranked" is any rule by rank
Writes = Literal["onward", "second", "nothing"]  # what can be written: more of a text, a second text, neither


class See(Protocol):
    """What a recipe's `see` must be."""

    @property
    def pattern(self) -> Pattern: ...

    @property
    def segments(self) -> int:
        """How many kinds of segments it tells apart; 0: those of the layout."""

    @property
    def kinds(self) -> tuple[int, ...]:
        """For each of these, the segment of the layout that it stands for."""

    @property
    def serving(self) -> See:
        """The view that a finished model reads with: itself, or one of several."""

    @property
    def writes(self) -> Writes:
        """What a model with this view can write."""

    @property
    def writing(self) -> See:
        """The view in which a second text is written after the first."""

    def draw(self, batch: Batch, seed: int) -> Batch:
        """The batch with the view of each row drawn, where there are several; done before hiding."""

    def apply(self, batch: Batch) -> Batch:
        """The batch with the rank of every token, and what else follows from the view."""


class View:
    """A view that is the same for all rows: what the single views have in common."""

    @property
    def pattern(self) -> Pattern:
        return "ranked"

    @property
    def segments(self) -> int:
        return 0

    @property
    def kinds(self) -> tuple[int, ...]:
        return ()

    @property
    def serving(self) -> See:
        return self

    @property
    def writes(self) -> Writes:
        return "nothing"

    @property
    def writing(self) -> See:
        return Prefix()

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

    def rank(self, batch: Batch) -> Tensor:
        return torch.zeros_like(batch.position)


@dataclass(frozen=True)
class LeftToRight(View):
    """Every token sees itself and what stands before it (GPT)."""

    @property
    def pattern(self) -> Pattern:
        return "left"

    @property
    def writes(self) -> Writes:
        return "onward"

    def rank(self, batch: Batch) -> Tensor:
        return batch.position


@dataclass(frozen=True)
class RightToLeft(View):
    """Every token sees itself and what stands after it."""

    def rank(self, batch: Batch) -> Tensor:
        return -batch.position


@dataclass(frozen=True)
class Prefix(View):
    """The first text sees itself whole; the second sees the first, and its own tokens from left to right (UniLM)."""

    @property
    def writes(self) -> Writes:
        return "second"

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
    def serving(self) -> See:
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
        assert batch.targets is not None, "nothing was hidden"
        rows, length = batch.shape
        where = torch.where(batch.targets.weight > 0, batch.targets.where, rows * length)
        predicted = torch.zeros(rows * length + 1, dtype=torch.bool, device=where.device).scatter(0, where, True)
        given = (batch.word >= 0) & ~predicted[:-1].view(rows, length)
        place = torch.arange(length, device=where.device)
        part = (place >= (batch.reuse or length)).long() * (length + 1)
        return part + torch.where(given, 0, batch.order + 1)


@dataclass(frozen=True)
class Mixed:
    """Each row takes one of four views, drawn by their shares; each view has segments of its own (UniLM)."""

    everything: float = 1 / 3  # the share of rows that see everything; only there the sentence task counts
    prefix: float = 1 / 3  # whose second text is written after reading the first
    left: float = 1 / 6  # that read from left to right
    right: float = 1 / 6  # that read from right to left

    def __post_init__(self) -> None:
        shares = (self.everything, self.prefix, self.left, self.right)
        require(
            min(shares) >= 0 and abs(sum(shares) - 1) < 1e-6,
            f"the shares of see's views must be 0 or more and add up to 1, got {shares}",
        )

    @property
    def pattern(self) -> Pattern:
        return "ranked"

    @property
    def segments(self) -> int:
        return len(self.kinds)

    @property
    def kinds(self) -> tuple[int, ...]:
        return (0, 1, 0, 0, 0, 1)  # of everything 0 and 1, of left to right 2, of right to left 3, of prefix 4 and 5

    @property
    def serving(self) -> See:
        return Everything()  # what `apply` does with rows whose view was not drawn

    @property
    def writes(self) -> Writes:
        return "second" if self.prefix else "nothing"

    @property
    def writing(self) -> See:
        return Mixed(everything=0.0, prefix=1.0, left=0.0, right=0.0)

    def draw(self, batch: Batch, seed: int) -> Batch:
        drawn = chance.uniform(batch.row, seed, batch.visit, chance.purpose("view"))
        mode, total = torch.zeros_like(batch.row), 0.0
        for share in (self.everything, self.prefix, self.left):
            total += share
            mode += drawn >= total
        return batch.replace(mode=mode)

    def rank(self, batch: Batch) -> Tensor:
        return _pick([view.rank(batch) for view in _VIEWS], _mode(batch))

    def apply(self, batch: Batch) -> Batch:
        mode = _mode(batch)
        two, three = torch.full_like(batch.segment, 2), torch.full_like(batch.segment, 3)
        segment = _pick([batch.segment, batch.segment + 4, two, three], mode)
        answers = (mode == 0).repeat_interleave(len(batch.counted) // len(mode))
        return batch.replace(rank=self.rank(batch), segment=segment, counted=batch.counted * answers)


def _mode(batch: Batch) -> Tensor:
    return batch.mode if batch.mode is not None else torch.zeros_like(batch.ids[:, 0])


def _pick(each: list[Tensor], mode: Tensor) -> Tensor:
    """B T, for every row the one of these that its mode names."""
    return torch.stack(each).gather(0, mode[None, :, None].expand(1, *each[0].shape))[0]


_VIEWS = (Everything(), Prefix(), LeftToRight(), RightToLeft())  # in the order of Mixed's modes


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
