"""Predict which of several texts is the correct one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.label import POOLS, check_pooler, pooled
from unmask.predict.objective import Predicts, read_again


@dataclass(frozen=True)
class Choice(Predicts):
    """One of several choices. Each choice has a row and gets a score; one softmax runs over the scores of an example.

    Paper: GPT (Radford et al. 2018); with a pooler, BERT. Needs: a row per choice, one label per example.
    Produces: a cross-entropy per example. Used by: models adapted to choose.
    Differs from Label: the answers are texts, and each example may have a different number of them.
    """

    pool: Literal["summary", "mean"] = "summary"  # the vector of the summary token, or the mean over all tokens
    pooler: bool = True  # a layer before the output
    activation: Literal["tanh", "gelu"] = "tanh"  # of the pooler
    pooler_bias: bool = True  # of the pooler
    pooler_norm: float | None = None  # epsilon of a norm without a bias after the pooler (ModernBERT); none: no norm
    dropout: float = 0.0  # before the output

    def __post_init__(self) -> None:
        require(0 <= self.dropout < 1, "a choice's dropout must be in [0, 1), got {dropout}", dropout=self.dropout)
        require(
            self.pooler or self.activation == "tanh",
            (
                "a choice's activation is the activation of its pooler, and there is no pooler, got "
                "{activation!r}: leave activation out, or adapt a model that sees everything"
            ),
            activation=self.activation,
        )
        check_pooler("a choice", self.pooler, self.pooler_bias, self.pooler_norm)

    @property
    def outputs(self) -> int:
        """The number of scores of a row."""
        return 1

    @property
    def bias(self) -> bool:
        """Whether the output has a bias. It would be the same for every choice."""
        return False

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def reads_decoder(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("labels", "it predicts the correct choice of each example"),
            Need("unpacked rows", "it reads one choice in each row"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"choice scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> ChoiceModule:
        return ChoiceModule(self, width, initial)


class ChoiceModule(nn.Module):
    def __init__(self, spec: Choice, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        self.dense = initial.layer(nn.Linear(width, width, bias=spec.pooler_bias)) if spec.pooler else None
        self.norm = nn.LayerNorm(width, eps=spec.pooler_norm, bias=False) if spec.pooler_norm else nn.Identity()
        self.out = initial.layer(nn.Linear(width, spec.outputs, bias=spec.bias))
        self.dropout = nn.Dropout(spec.dropout)

    def count(self, batch: Batch) -> Tensor:
        return batch.counted.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        losses = F.cross_entropy(self.decode(hidden, batch).float(), batch.label, reduction="none")
        return Loss((losses * batch.counted).sum(), batch.counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E K, the score of each choice of each example; minus infinity where an example has fewer than K choices."""
        vectors, read = read_again(hidden, batch)
        (pool,) = POOLS[self.spec.pool]
        x = self.norm(pooled(pool(vectors, read), self.dense, self.spec.activation))
        scores = self.out(self.dropout(x))[:, 0]
        empty = ~read.real.flatten()[read.summary]
        return scores.masked_fill(empty, -float("inf")).view(len(batch.label), -1)
