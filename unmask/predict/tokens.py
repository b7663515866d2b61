"""Predict the hidden tokens at their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.predict.start import start


@dataclass(frozen=True)
class Tokens:
    """The token that stands at each target.

    Paper: BERT (transform, bias), GPT (neither). Needs: targets. Produces: a cross-entropy per target.
    Used by: every recipe that predicts tokens. Differs from Label: one answer per hidden token, not per example.
    """

    tied: bool = True  # the output weights are the token embeddings
    transform: bool = True  # a layer and a norm before the output (BERT)
    bias: bool = True  # one number per token of the vocabulary
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # of the transform
    epsilon: float = 1e-12  # of the transform's norm

    def build(self, width: int, embedding: Tensor, deviation: float) -> TokensModule:
        return TokensModule(self, width, embedding, deviation)

    def flops(self, width: int, embedding: int, vocabulary: int, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return share * (2 * embedding * vocabulary + (2 * width * embedding if self.transform else 0))


class TokensModule(nn.Module):
    def __init__(self, spec: Tokens, width: int, embedding: Tensor, deviation: float) -> None:
        super().__init__()
        self.spec = spec
        require(
            spec.transform or width == embedding.shape[1],
            f"embeddings of width {embedding.shape[1]} and layers of width {width} need predict.*.transform=true",
        )
        if spec.transform:
            self.dense = start(nn.Linear(width, embedding.shape[1]), deviation)
            self.norm = nn.LayerNorm(embedding.shape[1], eps=spec.epsilon)
        self.weight = embedding if spec.tied else nn.Parameter(torch.empty_like(embedding).normal_(std=deviation))
        self.bias = nn.Parameter(torch.zeros(len(embedding))) if spec.bias else None

    def count(self, batch: Batch) -> Tensor:
        assert batch.targets is not None, "nothing was hidden"
        return batch.targets.weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        return self.loss(self.at_targets(hidden, batch), batch)

    def at_targets(self, hidden: Hidden, batch: Batch) -> Tensor:
        """N V, the scores of every token of the vocabulary at every target."""
        assert batch.targets is not None, "nothing was hidden"
        if hidden.query is not None:  # a stream of its own, that does not see what it predicts
            return self.scores(hidden.query)
        return self.scores(hidden.last.flatten(0, 1)[batch.targets.where])

    def loss(self, scores: Tensor, batch: Batch) -> Loss:
        assert batch.targets is not None, "nothing was hidden"
        losses = F.cross_entropy(scores.float(), batch.targets.ids, reduction="none")
        return Loss((losses * batch.targets.weight).sum(), batch.targets.weight.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the scores of every token of the vocabulary at every place."""
        return self.scores(hidden.last)

    def scores(self, x: Tensor) -> Tensor:
        if self.spec.transform:
            x = self.dense(x)
            kind = self.spec.activation
            x = self.norm(
                F.relu(x) if kind == "relu" else F.gelu(x, approximate="tanh" if kind == "gelu_tanh" else "none")
            )
        return F.linear(x, self.weight, self.bias)
