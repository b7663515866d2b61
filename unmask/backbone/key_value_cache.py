"""The key-value cache: with it, a left-to-right Transformer computes the keys and values of each token only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.backbone.attention import AttentionMask
from unmask.batch import Batch, Record
from unmask.errors import require
from unmask.see import visible

_MULTIPLE = 8  # the length is a multiple of 8: kernels that read a mask need an aligned length


@dataclass(frozen=True)
class Cache(Record):
    """Space for M tokens in every row. Keys and values are written in place, so two generations cannot share a cache."""

    keys: Tensor  # B L H M D, zeros where no token was read yet
    values: Tensor  # B L H M D
    real: Tensor  # B M, True where a token was read that is not padding
    filled: Tensor  # how many of the M places are used, equal in all rows; a tensor, so nothing waits for the device

    @classmethod
    def empty(cls, layers: int, rows: int, heads: int, length: int, width: int, like: Tensor) -> Cache:
        """A cache with space for at least `length` tokens, on the device and in the precision of `like`."""
        places = -(-length // _MULTIPLE) * _MULTIPLE
        shape = (rows, layers, heads, places, width)
        real = torch.zeros(rows, places, dtype=torch.bool, device=like.device)
        filled = torch.zeros((), dtype=torch.long, device=like.device)
        return cls(like.new_zeros(shape), like.new_zeros(shape), real, filled)

    @property
    def position(self) -> Tensor:
        """B M, the position of every token in its text; -1 for padding before the text."""
        return self.real.cumsum(1) - 1

    def layer(self, number: int) -> tuple[Tensor, Tensor]:
        """The keys and values of a layer, each B H M D."""
        return self.keys[:, number], self.values[:, number]

    def take(self, batch: Batch) -> tuple[Batch, AttentionMask, Cache]:
        """The batch with positions that continue those in the cache, its mask, and the cache after the batch.

        A token sees all real tokens before the batch, and those of the batch that its rank allows. Padding sees itself,
        because a row of the mask must not be empty. Tokens after the first `reuse` are read but not kept."""
        length = batch.shape[1]
        kept = length if batch.reuse is None else batch.reuse
        new = torch.arange(length, device=self.filled.device)
        place = self.filled + new
        own = visible(batch) & batch.real[:, None] | (new == new[:, None])  # B T T
        mask = self.real[:, None].expand(-1, length, -1).index_copy(2, place, own)  # B T M
        moved = batch.replace(position=batch.position + self.real.sum(1, keepdim=True))
        after = self.replace(real=self.real.index_copy(1, place, batch.real & (new < kept)), filled=self.filled + kept)
        return moved, AttentionMask(length, mask=mask[:, None], place=place), after


def require_cached(name: str, part: Any, able: bool) -> None:
    """Refuse a part of a Transformer that is not able to use a cache."""
    require(
        able,
        (
            "system.backbone.{name}={part_kind} cannot continue from a cache of keys and values: generate with "
            "cached=False (--no-cache)"
        ),
        name=name,
        part_kind=type(part).__name__,
    )
