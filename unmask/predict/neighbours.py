"""Predict both neighbours of every token: the next one from the left half of its vector, the previous one from the right half."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need
from unmask.batch import Batch, Hidden, Loss, Targets
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts
from unmask.predict.tokens import cross_entropy

TARGETS = ("tokens", "previous")  # what the first and the second half of a vector predict


@dataclass(frozen=True)
class Neighbours(Predicts):
    """The next and the previous token, with one softmax for both directions.

    Paper: ELMo (Peters et al. 2018). Needs: the targets of Next and Previous, and vectors of two halves. Produces: a
    cross-entropy per target of both directions. Used by: elmo. Differs from Tokens: each half of a vector predicts for itself.
    """

    # in training, a target is compared with this number of random tokens, frequent ones more often; none: with all tokens
    samples: int | None = None

    def __post_init__(self) -> None:
        require(
            self.samples is None or self.samples >= 1,
            "predict.*.samples must be none or 1 or more, got {samples}",
            samples=self.samples,
        )

    @property
    def target(self) -> str:
        return TARGETS[0]

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("two halves", "it reads one half of a vector for each direction"),
            *(Need(f"targets:{name}", f"it predicts the targets {name!r}") for name in TARGETS),
        )

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> NeighboursModule:
        return NeighboursModule(self, width // 2, len(embedding))

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass. `share`: of both directions together."""
        return share * 2 * embedding * (vocabulary if self.samples is None else min(vocabulary, self.samples))


class NeighboursModule(nn.Module):
    token_rows: ClassVar[tuple[str, ...]] = ("weight", "bias")  # parameters with one row per token of the vocabulary

    def __init__(self, spec: Neighbours, width: int, vocabulary: int) -> None:
        super().__init__()
        self.samples = spec.samples
        self.weight = nn.Parameter(InitWeights("normal", width**-0.5).draw(torch.empty(vocabulary, width)))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def count(self, batch: Batch) -> Tensor:
        return torch.stack([batch.targets[name].weight.sum() for name in TARGETS]).sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        """The losses of both directions are added, so their mean is that of both perplexities' logarithms."""
        total: Tensor = torch.zeros((), device=batch.ids.device)
        for name, half in zip(TARGETS, hidden.for_prediction.chunk(2, -1), strict=True):
            targets = batch.targets[name]
            vectors = half.flatten(0, 1)[targets.at]  # N D
            sampled = self.training and self.samples is not None and self.samples < len(self.weight)
            loss = self._sampled(vectors, targets) if sampled else cross_entropy(self.scores(vectors), targets)
            total = total + loss.total
        return Loss(total, self.count(batch))

    def scores(self, vectors: Tensor) -> Tensor:
        return F.linear(vectors, self.weight, self.bias)

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the scores of every token of the vocabulary as the next token."""
        return self.scores(hidden.for_prediction.chunk(2, -1)[0])

    def _sampled(self, vectors: Tensor, targets: Targets) -> Loss:
        """Each target against random tokens that all targets share, drawn from a log-uniform distribution over ids: ids are
        sorted by frequency. A score is lowered by the logarithm of how often its token is drawn."""
        assert self.samples is not None
        drawn = log_uniform(self.samples, len(self.weight), vectors.device)
        right = (vectors * self.weight[targets.ids]).sum(-1) + self.bias[targets.ids]
        wrong = F.linear(vectors, self.weight[drawn], self.bias[drawn]).float()
        right = right.float() - self._expected(targets.ids)
        wrong = wrong - self._expected(drawn)
        wrong = wrong.masked_fill(drawn == targets.ids[:, None], -math.inf)  # the right token is not also a wrong one
        losses = torch.logsumexp(torch.cat((right[:, None], wrong), 1), 1) - right
        return Loss((losses * targets.weight).sum(), targets.weight.sum())

    def _expected(self, ids: Tensor) -> Tensor:
        """The logarithm of how often tokens are drawn, on average."""
        assert self.samples is not None
        return (self.samples * log_uniform_share(ids, len(self.weight))).log()


def log_uniform(count: int, size: int, device: torch.device) -> Tensor:
    """Random ids below `size`: id k with the probability log((k + 2) / (k + 1)) / log(size + 1)."""
    drawn = (torch.rand(count, device=device, dtype=torch.float64) * math.log(size + 1)).exp().long() - 1
    return drawn.clamp(0, size - 1)


def log_uniform_share(ids: Tensor, size: int) -> Tensor:
    """The probability that an id is drawn."""
    return ((ids + 2.0) / (ids + 1.0)).log() / math.log(size + 1)
