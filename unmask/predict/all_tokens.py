"""Predict the original token at every position, either by copying the input or by scoring the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts
from unmask.predict.tokens import Tokens


@dataclass(frozen=True)
class AllTokens(Predicts):
    """The original of every token, after a generator replaced some tokens; the model may copy its input.

    Paper: ELECTRA's ablation "all-tokens MLM". Needs: a generator's replacements. Produces: a cross-entropy per token.
    Used by: electra, variant all-tokens. Differs from Replaced: the original token itself is predicted.
    """

    epsilon: float = 1e-12  # of the transform's norm

    @property
    def asked_at(self) -> AskedAt:
        return "tokens"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("original", "it predicts the tokens that a generator replaced"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"original scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> AllTokensModule:
        return AllTokensModule(self, width, embedding, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return Tokens().flops(width, embedding, vocabulary, 1.0) + 2 * width


class AllTokensModule(nn.Module):
    def __init__(self, spec: AllTokens, width: int, embedding: Tensor, initial: InitWeights) -> None:
        super().__init__()
        self.write = Tokens(epsilon=spec.epsilon).build(width, embedding, initial)
        self.keep = initial.layer(nn.Linear(width, 1))

    def count(self, batch: Batch) -> Tensor:
        return batch.real.float().sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        assert batch.original is not None, "no generator has replaced anything"
        losses = -self._logs(hidden, batch, batch.original)
        return Loss((losses * batch.real).sum(), batch.real.float().sum())

    def original(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T, the logarithm of the probability that each token is the original."""
        return self._logs(hidden, batch, batch.ids)

    def _logs(self, hidden: Hidden, batch: Batch, original: Tensor) -> Tensor:
        """B T, the logarithm of the probability of these originals: a token is copied, or written."""
        scores, keep = self.write.scores(hidden.last).float(), self.keep(hidden.last).float()[..., 0]
        wrote = F.logsigmoid(-keep) - F.cross_entropy(scores.flatten(0, 1), original.flatten(), reduction="none").view(
            batch.shape
        )
        kept = torch.where(batch.ids == original, F.logsigmoid(keep), -torch.inf)
        return torch.logaddexp(wrote, kept)

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the scores of every token of the vocabulary at every position, for tokens that are not copied."""
        return self.write.scores(hidden.last)
