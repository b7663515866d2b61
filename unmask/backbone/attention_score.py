"""Attention of a recurrent decoder: scores of a state and the vectors of a source (Bahdanau et al. 2014, Luong et al. 2015).

A score is a part. For a query q and a key k:
    Dot      q · k
    General  q · W k
    Concat   v · tanh(W [q; k])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from unmask.axes import Part, PartLike
from unmask.errors import require


class Score(PartLike, Protocol):
    """A part that scores keys."""

    def scorer(self, query: int, key: int) -> nn.Module:
        """A module: queries B T Q and keys B S K give scores B T S. The arguments are the two widths."""


@dataclass(frozen=True)
class Dot(Part):
    """The product of query and key, which must have the same width (Luong et al. 2015)."""

    def scorer(self, query: int, key: int) -> nn.Module:
        require(
            query == key,
            "backbone.score=Dot compares states of the decoder with vectors of the source, and their widths are {query} and "
            "{key}: set backbone.score=General",
            query=query,
            key=key,
        )
        return DotScore()


@dataclass(frozen=True)
class General(Part):
    """The product of query and key with a matrix between them (Luong et al. 2015, CoVe)."""

    def scorer(self, query: int, key: int) -> nn.Module:
        return GeneralScore(query, key)


@dataclass(frozen=True)
class Concat(Part):
    """A small network reads query and key (Bahdanau et al. 2014)."""

    def scorer(self, query: int, key: int) -> nn.Module:
        return ConcatScore(query, key)


class DotScore(nn.Module):
    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class GeneralScore(nn.Module):
    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        self.between = nn.Linear(key, query, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        found: Tensor = query @ self.between(keys).transpose(1, 2)
        return found


class ConcatScore(nn.Module):
    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(query, query, bias=False), nn.Linear(key, query, bias=False)
        self.out = nn.Linear(query, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.query(query)[:, :, None] + self.key(keys)[:, None])).squeeze(3)
        return found


class SourceAttention(nn.Module):
    """The mean of the vectors of a source, weighted by the softmax of their scores."""

    attends = "source"  # what its weights are about, for drawing them

    def __init__(self, score: Score, query: int, key: int) -> None:
        super().__init__()
        self.score = score.scorer(query, key)

    def forward(self, query: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """B T K. `real`: B S, True on the tokens of the source. Rows without any token get the mean of all vectors."""
        scores = self.score(query, keys)
        hidden = ~real[:, None] & real.any(1)[:, None, None]
        weights = scores.float().masked_fill(hidden, float("-inf")).softmax(2)
        return weights.to(keys.dtype) @ keys
