"""Embed: tokens, positions and segments as vectors."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.batch import Batch

Positions = Literal["learned", "sinusoidal"]


class Norm(nn.LayerNorm):
    """Layer norm that computes in float32 and answers in the precision it was asked in."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).to(x.dtype)


class Embed(nn.Module):
    """The sum of what a token is, where it stands and which text it belongs to; its width may differ from the layers'."""

    def __init__(
        self, vocabulary: int, width: int, *, length: int, positions: Positions, segments: int, norm: bool, dropout: float,
        epsilon: float,
    ) -> None:  # fmt: skip
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position: nn.Module = nn.Embedding(length, width) if positions == "learned" else Waves(length, width)
        self.segment = nn.Embedding(segments, width) if segments else None
        self.norm = Norm(width, eps=epsilon) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        x = self.token(batch.ids) + self.position(batch.position)
        if self.segment is not None:
            # a product with few rows: its gradient is one matrix product, a look-up's is a slow sum over all tokens
            x = x + F.one_hot(batch.segment, len(self.segment.weight)).to(x.dtype) @ self.segment.weight
        return self.dropout(self.norm(x))  # B T D


class Waves(nn.Module):
    """Positions that are not learned: sine and cosine waves of geometric wavelengths (Vaswani et al. 2017)."""

    table: Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(length, width), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        return self.table[position]


def sinusoids(length: int, width: int) -> Tensor:
    """L D, the table of waves."""
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack((angle.sin(), angle.cos()), 2).flatten(1)[:, :width]
