"""Attention of a recurrent decoder: scores of a state and the vectors of a source (Bahdanau et al. 2014, Luong et al. 2015).

A score is a part. For a query q and a key k:
    Dot      q · k
    General  q · W k
    Concat   v · tanh(W [q; k])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unmask.axes import Part, PartLike
from unmask.errors import require


class Score(PartLike, Protocol):
    """A part that scores keys."""

    def scorer(self, query: int, key: int) -> nn.Module:
        """A module whose `prepare` reads keys, B S K, once. Called with queries, B T Q, and the result, it gives scores, B T S. The
        arguments are the two widths."""


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
    def prepare(self, keys: Tensor) -> Tensor:
        """What the scores of all queries need of the keys; it is computed once."""
        return keys

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        return query @ prepared.transpose(1, 2)


class GeneralScore(DotScore):
    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        self.between = nn.Linear(key, query, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        found: Tensor = self.between(keys)
        return found


class ConcatScore(nn.Module):
    def __init__(self, query: int, key: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(query, query, bias=False), nn.Linear(key, query, bias=False)
        self.out = nn.Linear(query, 1, bias=False)

    def prepare(self, keys: Tensor) -> Tensor:
        found: Tensor = self.key(keys)
        return found

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.query(query)[:, :, None] + prepared[:, None])).squeeze(3)
        return found


@dataclass(frozen=True)
class Prepared:
    """A source, ready for queries."""

    keys: Tensor  # B S K
    scored: Tensor  # B S Q, what the scores need of the keys
    hidden: Tensor  # B 1 S, minus infinity on padding, 0 elsewhere


class SourceAttention(nn.Module):
    """The mean of the vectors of a source, weighted by the softmax of their scores."""

    attends = "source"  # what its weights are about, for drawing them

    def __init__(self, score: Score, query: int, key: int) -> None:
        super().__init__()
        self.score: Any = score.scorer(query, key)

    def prepare(self, keys: Tensor, real: Tensor) -> Prepared:
        """`real`: B S, True on the tokens of the source. A row without any token reads its padding."""
        hidden = ~real & real.any(1, keepdim=True)
        return Prepared(
            keys,
            self.score.prepare(keys),
            torch.zeros_like(keys[:, None, :, 0]).masked_fill(hidden[:, None], float("-inf")),
        )

    def forward(self, query: Tensor, source: Prepared) -> Tensor:
        """B T K, what the queries B T Q gather."""
        weights = (self.score(query, source.scored) + source.hidden).softmax(2)
        return weights @ source.keys
