"""Adaptive embeddings: frequent tokens have wide vectors, rare ones narrow (Baevski and Auli 2018)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from unmask.errors import require


class AdaptiveEmbedding(nn.Module):
    """Token ids in clusters; each cluster has vectors `divide` times narrower than the cluster before it.

    Token ids must go from frequent to rare. All clusters are looked up for all tokens, so that shapes are static.
    """

    def __init__(self, vocabulary: int, width: int, cutoffs: tuple[int, ...], divide: int, *, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation  # of the initial projections
        require(
            list(cutoffs) == sorted(set(cutoffs)) and cutoffs[0] > 0 and cutoffs[-1] < vocabulary,
            f"backbone.cutoffs must rise, and lie between 0 and the {vocabulary:,} tokens there are, got {cutoffs}: "
            "set system.backbone.cutoffs, such as (1000, 5000)",
        )
        self.edges = (0, *cutoffs, vocabulary)
        widths = [max(1, width // divide**i) for i in range(len(self.edges) - 1)]
        sizes = [end - begin for begin, end in pairwise(self.edges)]
        self.tables = nn.ParameterList(torch.empty(n, w) for n, w in zip(sizes, widths, strict=True))
        self.projections = nn.ParameterList(torch.empty(width, w) for w in widths)

    @property
    def weight(self) -> AdaptiveEmbedding:
        """What a tied head shares: tables and projections."""
        return self

    def draw_projection(self, weight: Tensor) -> Tensor:
        """Fill a projection with new weights; a head with its own projections initialises them in the same way."""
        return nn.init.normal_(weight, std=self.deviation)

    def forward(self, ids: Tensor) -> Tensor:
        found: list[Tensor] = []
        for (begin, end), table, projection in zip(pairwise(self.edges), self.tables, self.projections, strict=True):
            mine = (ids >= begin) & (ids < end)
            vectors = nn.functional.embedding((ids - begin).clamp(0, end - begin - 1), table)
            found.append(nn.functional.linear(vectors, projection) * mine[..., None])
        return torch.stack(found).sum(0)
