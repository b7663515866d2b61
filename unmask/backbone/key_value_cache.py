"""Cache: the keys and values of the tokens that a left-to-right Transformer has read, so that each is read once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.backbone.attention import AttentionMask
from unmask.batch import Batch, Record

_MULTIPLE = 8  # of places: a kernel that reads a mask wants it aligned


@dataclass(frozen=True)
class Cache(Record):
    """Places for M tokens of every row. Keys and values are written in place: a cache belongs to one generation."""

    keys: Tensor  # L B H M D, zeros where nothing was read yet
    values: Tensor  # L B H M D
    real: Tensor  # B M, True where a token was read that is not padding
    filled: Tensor  # how many places are taken, of every row as many; on the device, so that nothing waits for it

    @classmethod
    def empty(cls, layers: int, rows: int, heads: int, length: int, width: int, like: Tensor) -> Cache:
        """For so many tokens or a few more; on the device and in the precision of `like`."""
        places = -(-length // _MULTIPLE) * _MULTIPLE
        shape = (layers, rows, heads, places, width)
        real = torch.zeros(rows, places, dtype=torch.bool, device=like.device)
        filled = torch.zeros((), dtype=torch.long, device=like.device)
        return cls(like.new_zeros(shape), like.new_zeros(shape), real, filled)

    def chosen(self, rows: Tensor) -> Cache:
        """A cache of its own that holds these rows, in this order; a row may be taken more than once."""
        return self.replace(
            keys=self.keys.index_select(1, rows), values=self.values.index_select(1, rows), real=self.real[rows]
        )

    def take(self, batch: Batch) -> tuple[Batch, AttentionMask, Cache]:
        """The batch with positions that go on from what is here, who sees whom, and the cache once it was read.

        A token sees the real tokens before it, and itself: padding too, since an empty view would give no number."""
        length = batch.shape[1]
        place = self.filled + torch.arange(length, device=self.filled.device)
        real = self.real.index_copy(1, place, batch.real)
        key, query = torch.arange(real.shape[1], device=place.device), place[:, None]
        mask = (key <= query) & (real[:, None] | (key == query))  # B T M
        moved = batch.replace(position=batch.position + self.real.sum(1, keepdim=True))
        return (
            moved,
            AttentionMask(length, mask=mask[:, None], place=place),
            self.replace(real=real, filled=self.filled + length),
        )
