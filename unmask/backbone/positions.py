"""Positions: how a Transformer knows the position of a token in its example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unmask.axes import Part


@dataclass(frozen=True)
class Learned(Part):
    """A learned vector for each position (BERT, GPT)."""

    every: bool = False  # each layer after the first adds its own learned table (the character Transformer)
    # initial values: random, or waves that half of the heads of the first layer read, each at another neighbour of a token
    start: Literal["random", "neighbours"] = "random"

    @property
    def bounded(self) -> bool:
        return True

    @property
    def neighbours(self) -> bool:
        return self.start == "neighbours"

    def embedding(self, length: int, width: int) -> nn.Module:
        return nn.Embedding(length, width)

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        return _tables(layers, length, width) if self.every else []

    def rotation(self, position: Tensor, width: int, *, local: bool) -> None:
        return None


@dataclass(frozen=True)
class Sinusoidal(Part):
    """Sine and cosine waves of geometric wavelengths (Vaswani et al. 2017)."""

    every: bool = False  # each layer after the first adds its own learned table

    @property
    def bounded(self) -> bool:
        return self.every

    @property
    def neighbours(self) -> bool:
        return False

    def embedding(self, length: int, width: int) -> nn.Module:
        return Waves(length, width)

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        return _tables(layers, length, width) if self.every else []

    def rotation(self, position: Tensor, width: int, *, local: bool) -> None:
        return None


@dataclass(frozen=True)
class NoPositions(Part):
    """No position embeddings: attention or a decoder knows the positions, or they do not matter (DeBERTa)."""

    @property
    def bounded(self) -> bool:
        return False

    @property
    def neighbours(self) -> bool:
        return False

    def embedding(self, length: int, width: int) -> None:
        return None

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        return []

    def rotation(self, position: Tensor, width: int, *, local: bool) -> None:
        return None


def _tables(layers: int, length: int, width: int) -> list[nn.Module]:
    return [nn.Embedding(length, width) for _ in range(1, layers)]


class Waves(nn.Module):
    """A table of sine and cosine waves. It is not learned."""

    table: Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(length, width), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        return self.table[position]


def sinusoids(length: int, width: int) -> Tensor:
    """T D, the table of waves."""
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack((angle.sin(), angle.cos()), 2).flatten(1)[:, :width]
