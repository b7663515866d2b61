"""Adaptive embeddings: frequent tokens have wide vectors, rare tokens narrow ones (Baevski and Auli 2018)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from unmask.errors import require


class AdaptiveEmbedding(nn.Module):
    """Clusters of token ids. The vectors of each cluster are `divide` times narrower than those of the cluster before.

    Token ids must be sorted from frequent to rare. All clusters are looked up for all tokens, so that shapes are static.
    """

    def __init__(self, vocabulary: int, width: int, cutoffs: tuple[int, ...], divide: int, *, deviation: float) -> None:
        super().__init__()
        self.deviation = deviation  # of the initial projections
        require(
            list(cutoffs) == sorted(set(cutoffs)) and cutoffs[0] > 0 and cutoffs[-1] < vocabulary,
            (
                "backbone.cutoffs must be increasing token ids between 0 and the vocabulary size of "
                "{vocabulary:,}, got {cutoffs}: set system.backbone.cutoffs, such as (1000, 5000)"
            ),
            vocabulary=vocabulary,
            cutoffs=cutoffs,
        )
        self.edges = (0, *cutoffs, vocabulary)
        widths = [max(1, width // divide**i) for i in range(len(self.edges) - 1)]
        sizes = [end - begin for begin, end in pairwise(self.edges)]
        self.tables = nn.ParameterList(torch.empty(n, w) for n, w in zip(sizes, widths, strict=True))
        self.projections = nn.ParameterList(torch.empty(width, w) for w in widths)

    @property
    def weight(self) -> AdaptiveEmbedding:
        """The tables and projections that a tied head shares."""
        return self

    def draw_projection(self, weight: Tensor) -> Tensor:
        """Fill a projection with random weights. A head with its own projections initialises them in the same way."""
        return nn.init.normal_(weight, std=self.deviation)

    def forward(self, ids: Tensor) -> Tensor:
        found: list[Tensor] = []
        for (begin, end), table, projection in zip(pairwise(self.edges), self.tables, self.projections, strict=True):
            mine = (ids >= begin) & (ids < end)
            vectors = nn.functional.embedding((ids - begin).clamp(0, end - begin - 1), table)
            found.append(nn.functional.linear(vectors, projection) * mine[..., None])
        return torch.stack(found).sum(0)
