"""See: who may see whom, as one whole number per token.

A key is visible to a query iff both belong to the same example and the key's rank is not greater than the query's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from unmask.batch import Batch

Pattern = Literal["everything", "left", "ranked"]  # what a kernel may rely on; "ranked" is any rule by rank


class See(Protocol):
    """What a recipe's `see` must be."""

    @property
    def pattern(self) -> Pattern: ...

    def rank(self, batch: Batch) -> Tensor:
        """B T, the rank of every token."""


@dataclass(frozen=True)
class Everything:
    """Every token sees its whole example (BERT)."""

    @property
    def pattern(self) -> Pattern:
        return "everything"

    def rank(self, batch: Batch) -> Tensor:
        return torch.zeros_like(batch.position)


@dataclass(frozen=True)
class LeftToRight:
    """Every token sees itself and what stands before it (GPT)."""

    @property
    def pattern(self) -> Pattern:
        return "left"

    def rank(self, batch: Batch) -> Tensor:
        return batch.position


def visible(batch: Batch) -> Tensor:
    """B T T: may the query (second) see the key (third)? Padding sees the padding of its row and nothing else."""
    assert batch.rank is not None, "see has not been applied"
    same = batch.example[:, :, None] == batch.example[:, None, :]
    return same & (batch.rank[:, None, :] <= batch.rank[:, :, None])
