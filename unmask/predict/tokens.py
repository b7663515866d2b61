"""Predict the hidden tokens at their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.batch import Batch, Hidden, Loss


@dataclass(frozen=True)
class Tokens:
    """The token that stands at each target.

    Paper: BERT (transform, bias), GPT (neither). Needs: targets. Produces: a cross-entropy per target.
    Used by: bert, roberta, gpt2. Differs from Label: one answer per hidden token, not per example.
    """

    tied: bool = True  # the output weights are the token embeddings
    transform: bool = True  # a layer and a norm before the output (BERT)
    bias: bool = True  # one number per token of the vocabulary
    activation: Literal["gelu", "gelu_tanh"] = "gelu"  # of the transform
    epsilon: float = 1e-12  # of the transform's norm

    def build(self, width: int, embedding: Tensor, deviation: float) -> TokensModule:
        return TokensModule(self, width, embedding, deviation)

    def flops(self, width: int, vocabulary: int) -> float:
        """Floating-point operations per prediction of one forward pass."""
        return 2 * width * vocabulary + (2 * width**2 if self.transform else 0)


class TokensModule(nn.Module):
    def __init__(self, spec: Tokens, width: int, embedding: Tensor, deviation: float) -> None:
        super().__init__()
        self.spec = spec
        if spec.transform:
            self.dense = nn.Linear(width, width)
            self.norm = nn.LayerNorm(width, eps=spec.epsilon)
            nn.init.trunc_normal_(self.dense.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            nn.init.zeros_(self.dense.bias)
        self.weight = embedding if spec.tied else nn.Parameter(torch.empty_like(embedding).normal_(std=deviation))
        self.bias = nn.Parameter(torch.zeros(len(embedding))) if spec.bias else None

    def count(self, batch: Batch) -> Tensor:
        assert batch.targets is not None, "nothing was hidden"
        return batch.targets.weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        assert batch.targets is not None, "nothing was hidden"
        logits = self.scores(hidden.last.flatten(0, 1)[batch.targets.where])
        losses = F.cross_entropy(logits.float(), batch.targets.ids, reduction="none")
        return Loss((losses * batch.targets.weight).sum(), batch.targets.weight.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T V, the scores of every token of the vocabulary at every place."""
        return self.scores(hidden.last)

    def scores(self, x: Tensor) -> Tensor:
        if self.spec.transform:
            x = self.norm(F.gelu(self.dense(x), approximate="tanh" if self.spec.activation == "gelu_tanh" else "none"))
        return F.linear(x, self.weight, self.bias)
