"""The adaptive softmax: predict a token of a large vocabulary in two steps, first its cluster, then the token."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts, reads_targets


@dataclass(frozen=True)
class Adaptive(Predicts):
    """A first softmax over the frequent tokens and the clusters of rare tokens, then one over the cluster's tokens.

    Paper: Grave et al. 2016; Transformer-XL on WikiText-103. Needs: targets, and adaptive embeddings
    (system.backbone.cutoffs), whose tables are the output weights. Produces: a cross-entropy per target.
    Used by: transformer-xl, variant words. Differs from Tokens: rare tokens have narrower output weights.
    """

    own: tuple[int, ...] = ()  # clusters, counted from 0, that do not share the projection of their embeddings

    @property
    def target(self) -> str:
        return "tokens"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            *reads_targets("tokens", query=True),
            Need("clusters", "it computes scores with the tables of adaptive embeddings"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"token scores"})

    def build(self, width: int, embedding: Any, initial: InitWeights) -> AdaptiveModule:
        return AdaptiveModule(self, width, embedding, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass. `vocabulary`: a narrow row of the token table
        counts as a fraction of a full-width row."""
        return share * 2 * embedding * vocabulary


class AdaptiveModule(nn.Module):
    def __init__(self, spec: Adaptive, width: int, embedding: Any, initial: InitWeights) -> None:
        super().__init__()
        self.edges: tuple[int, ...] = embedding.edges
        self.tables = embedding.tables
        last = len(self.tables) - 1
        require(
            all(0 <= number <= last for number in spec.own),
            (
                "predict.*.own must contain only clusters from 0 to {last}, got {own}: remove the others, or set "
                "it to ()"
            ),
            last=last,
            own=spec.own,
        )
        self.projections = nn.ParameterList(
            embedding.draw_projection(torch.empty_like(shared)) if number in spec.own else shared
            for number, shared in enumerate(embedding.projections)
        )
        self.bias = nn.ParameterList(torch.zeros(len(table)) for table in self.tables)
        self.cluster = nn.Parameter(initial.draw(torch.empty(len(self.tables) - 1, self.tables[0].shape[1])))
        self.cluster_bias = nn.Parameter(torch.zeros(len(self.tables) - 1))

    def count(self, batch: Batch) -> Tensor:
        return (batch.decoder or batch).targets["tokens"].weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        targets = (batch.decoder or batch).targets["tokens"]
        x = hidden.query if hidden.query is not None else hidden.for_prediction.flatten(0, 1)[targets.at]
        first = self._first(x)
        found = torch.zeros_like(first[:, 0])
        for number, (begin, end) in enumerate(pairwise(self.edges)):
            here = (targets.ids - begin).clamp(0, end - begin - 1)[:, None]
            within = (first if number == 0 else self._within(x, number)).gather(1, here)[:, 0]
            score = within if number == 0 else within + first[:, self.edges[1] + number - 1]
            found = torch.where((targets.ids >= begin) & (targets.ids < end), score, found)
        return Loss(-(found * targets.weight).sum(), targets.weight.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the log-probability of every token of the vocabulary at every place."""
        x = hidden.for_prediction
        first = self._first(x)
        parts = [first[..., : self.edges[1]]]
        for number in range(1, len(self.tables)):
            at = self.edges[1] + number - 1
            parts.append(self._within(x, number) + first[..., at : at + 1])
        return torch.cat(parts, -1)

    def _first(self, x: Tensor) -> Tensor:
        """Log-probabilities of the frequent tokens, then of each cluster."""
        narrow = F.linear(x, self.projections[0].T)
        weight, bias = torch.cat((self.tables[0], self.cluster)), torch.cat((self.bias[0], self.cluster_bias))
        return F.linear(narrow, weight, bias).float().log_softmax(-1)

    def _within(self, x: Tensor, number: int) -> Tensor:
        """Log-probabilities of a cluster's tokens, given that the token is in this cluster."""
        narrow = F.linear(x, self.projections[number].T)
        return F.linear(narrow, self.tables[number], self.bias[number]).float().log_softmax(-1)
