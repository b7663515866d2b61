"""Predict where an answer begins and ends in a text, or that the text does not have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.init_weights import InitWeights
from unmask.predict.gelu_norm import check_norm, flops_before, layer_before
from unmask.predict.label import POOLS
from unmask.predict.objective import Predicts, read_again

CONTEXT: Final = "context"  # the column of the tokens that may be an answer; -1 on all others
BEGINS: Final = "answer_begins"  # the column of the first token of the answer
ENDS: Final = "answer_ends"  # the column of the last token of the answer
WEIGHT: Final = "weight"  # per example: 0.0 if its answer is not known


@dataclass(frozen=True)
class Span(Predicts):
    """The first and the last token of an answer. If the row does not have the answer, both are the place of the summary token.

    Paper: BERT (Devlin et al. 2019), on SQuAD 1.1 and 2.0. Needs: labels (the columns of the text and the answer).
    Produces: the mean of two cross-entropies per row. Used by: models adapted to find answers.
    Differs from Tags: one answer per row, and the tokens of the row compete for it.
    """

    # what says that there is no answer: the vector of the summary token, or the mean over all tokens
    pool: Literal["summary", "mean"] = "summary"
    # epsilon of a norm that follows a dense layer with GELU, both before the output and without a bias (ModernBERT); none: neither
    norm: float | None = None

    def __post_init__(self) -> None:
        check_norm("an answer", self.norm)

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def reads_decoder(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("labels", "it predicts the answer to each question"),
            Need("unpacked rows", "its answer is one of all tokens of a row"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"span scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> SpanModule:
        return SpanModule(self, width, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return 4.0 * width + flops_before(width, self.norm)


class SpanModule(nn.Module):
    def __init__(self, spec: Span, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        self.before = layer_before(width, spec.norm, initial)
        self.out = initial.layer(nn.Linear(width, 2))

    def count(self, batch: Batch) -> Tensor:
        return (batch.counted * batch.per_example[WEIGHT]).sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        rows, length = batch.shape
        summary = batch.summary - torch.arange(rows, device=batch.summary.device) * length
        allowed = (batch.columns[CONTEXT] >= 0).scatter(1, summary[:, None], True)
        scores = self.decode(hidden, batch).float().masked_fill(~allowed[..., None], -float("inf"))
        marked = torch.stack((batch.columns[BEGINS] >= 0, batch.columns[ENDS] >= 0), 2)  # B T 2
        whole = marked.any(1).all(1, keepdim=True)  # the answer may begin in another window
        places = torch.where(whole, marked.long().argmax(1), summary[:, None])  # B 2
        losses = F.cross_entropy(scores, places, reduction="none").mean(1)
        counted = batch.counted * batch.per_example[WEIGHT]
        return Loss((losses * counted).sum(), counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T 2, the score of each token as the first and as the last one of the answer. At the summary token: that there is none."""
        x, _ = read_again(hidden, batch)
        x = x if self.before is None else self.before(x)
        scores: Tensor = self.out(x)
        if self.spec.pool == "summary":
            return scores
        (pool,) = POOLS[self.spec.pool]
        none = self.out(pool(x, batch)).to(scores.dtype)  # one row has one example
        return scores.flatten(0, 1).index_copy(0, batch.summary, none).view_as(scores)
