"""Predict the class of each example: a sentence task in pretraining, a classifier in adaptation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.class_weights import add_class_weights, check_class_weights
from unmask.predict.objective import Predicts, read_again

ANSWERS: Final = "answers"  # per example: what it has, if it is not one class; E classes


@dataclass(frozen=True)
class Label(Predicts):
    """The class of an example, predicted from one vector.

    Paper: BERT (pooler and next-sentence head). Needs: labels. Produces: a cross-entropy per example.
    Used by: every sentence task and every classifier. Differs from Tokens: one answer per example.
    """

    classes: int = 2  # the number of classes
    # the vector of the summary token; the mean or the largest values over all tokens; or all three, side by side (ULMFiT)
    pool: Literal["summary", "mean", "max", "concat"] = "summary"
    pooler: bool = True  # a layer before the output
    activation: Literal["tanh", "gelu"] = "tanh"  # of the pooler
    pooler_bias: bool = True  # of the pooler
    pooler_norm: float | None = None  # epsilon of a norm without a bias after the pooler (ModernBERT); none: no norm
    bias: bool = True  # of the output
    dropout: float = 0.0  # before the output
    # what an example has: one class; any number of the classes (a sigmoid for each); a number (one class, squared error)
    answer: Literal["class", "classes", "number"] = "class"
    # of the loss of each class, or, if an example may have any number of classes, of a yes next to a no; empty: all 1
    weights: tuple[float, ...] = ()
    readings: Literal["sum", "mean"] = "sum"  # of the vectors of an example that is read several times

    def __post_init__(self) -> None:
        check_class_weights("a label", self.weights, self.classes)
        require(
            self.classes >= (2 if self.answer == "class" else 1),
            "a label needs 2 classes or more, got {classes}",
            classes=self.classes,
        )
        require(
            self.answer != "number" or self.classes == 1,
            "a number is one output, got classes={classes}: leave classes out",
            classes=self.classes,
        )
        require(0 <= self.dropout < 1, "a label's dropout must be in [0, 1), got {dropout}", dropout=self.dropout)
        require(
            self.pooler or self.activation == "tanh",
            (
                "a label's activation is the activation of its pooler, and there is no pooler, got {activation!r}: "
                "leave activation out, or predict the label from the summary token of a model that sees everything"
            ),
            activation=self.activation,
        )
        check_pooler("a label", self.pooler, self.pooler_bias, self.pooler_norm)

    @property
    def outputs(self) -> int:
        """The number of scores of an example."""
        return self.classes

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def reads_decoder(self) -> bool:
        return True

    @property
    def needs(self) -> tuple[Need, ...]:
        alone = Need("unpacked rows", "it reads an example in several rows", unless="readings=sum")
        return (Need("labels", "it predicts the class of each example"),) + (alone,) * (self.readings == "mean")

    @property
    def gives(self) -> frozenset[str]:
        return frozenset(
            {{"class": "class scores", "classes": "scores of each class", "number": "numbers"}[self.answer]}
        )

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> LabelModule:
        return LabelModule(self, width, initial)


class LabelModule(nn.Module):
    weights: Tensor | None

    def __init__(self, spec: Label, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        add_class_weights(self, spec.weights)
        read = 3 * width if spec.pool == "concat" else width
        self.dense = initial.layer(nn.Linear(read, width, bias=spec.pooler_bias)) if spec.pooler else None
        self.norm = nn.LayerNorm(width, eps=spec.pooler_norm, bias=False) if spec.pooler_norm else nn.Identity()
        self.out = initial.layer(nn.Linear(width if spec.pooler else read, spec.classes, bias=spec.bias))
        self.dropout = nn.Dropout(spec.dropout)

    def count(self, batch: Batch) -> Tensor:
        return batch.counted.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        losses = self._losses(self.decode(hidden, batch).float(), batch)
        return Loss((losses * batch.counted).sum(), batch.counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E classes, the score of each class for each example."""
        vectors, read = read_again(hidden, batch)
        x = torch.cat([pool(vectors, read) for pool in POOLS[self.spec.pool]], 1)
        x = self.norm(pooled(x, self.dense, self.spec.activation))
        # an example that is read several times has several vectors
        x = x.view(len(batch.label), -1, x.shape[-1])
        return self.out(self.dropout(x.sum(1) if self.spec.readings == "sum" else _mean(x, batch)))

    def _losses(self, scores: Tensor, batch: Batch) -> Tensor:
        """E, the loss of each example."""
        if self.spec.answer == "class":
            return F.cross_entropy(scores, batch.label, weight=self.weights, reduction="none")
        wanted = batch.per_example[ANSWERS].to(scores.dtype)  # E classes
        if self.spec.answer == "number":
            return F.mse_loss(scores, wanted, reduction="none")[:, 0]
        return F.binary_cross_entropy_with_logits(scores, wanted, pos_weight=self.weights, reduction="none").mean(1)


def _mean(x: Tensor, batch: Batch) -> Tensor:
    """E D, the mean over the readings of each example; an example with fewer readings than others has empty rows."""
    used = batch.real.any(1).view(len(x), -1, 1)
    return (x * used).sum(1) / used.sum(1).clamp(min=1)


def check_pooler(whose: str, pooler: bool, bias: bool, norm: float | None) -> None:
    """Refuse values of a pooler where there is none. `whose`: the head in the message."""
    require(
        pooler or (bias and norm is None),
        (
            "{whose}'s pooler_bias and pooler_norm belong to its pooler, and there is no pooler, got "
            "{bias} and {norm}: set pooler=true, or leave both out"
        ),
        whose=whose,
        bias=bias,
        norm=norm,
    )
    require(
        norm is None or norm > 0,
        "{whose}'s pooler_norm must be none or over 0, got {norm}",
        whose=whose,
        norm=norm,
    )


def pooled(x: Tensor, dense: nn.Linear | None, activation: str) -> Tensor:
    """The vectors after the pooler, if there is one."""
    if dense is None:
        return x
    return F.gelu(dense(x)) if activation == "gelu" else torch.tanh(dense(x))


def summaries(x: Tensor, batch: Batch) -> Tensor:
    """E D, the vector of each example's summary token."""
    return x.flatten(0, 1)[batch.summary]


def means(x: Tensor, batch: Batch) -> Tensor:
    """E D, the mean over each example's tokens."""
    rows, length = batch.shape
    places = len(batch.summary) // rows
    member = F.one_hot(batch.example + 1, places + 1)[..., 1:].to(x.dtype)  # B T K
    total = member.sum(1).clamp(min=1)  # B K
    return (torch.einsum("btk,btd->bkd", member, x) / total[..., None]).flatten(0, 1)


def largest(x: Tensor, batch: Batch) -> Tensor:
    """E D, the largest value of each dimension over each example's tokens; 0 at unused places."""
    rows, length = batch.shape
    places = len(batch.summary) // rows
    found = x.new_full((rows, places + 1, x.shape[2]), -torch.inf)  # the first place collects the padding
    number = (batch.example + 1)[..., None].expand(-1, -1, x.shape[2])
    found = found.scatter_reduce(1, number, x, "amax")[:, 1:]
    return found.masked_fill(found == -torch.inf, 0.0).flatten(0, 1)


POOLS = {"summary": (summaries,), "mean": (means,), "max": (largest,), "concat": (summaries, largest, means)}
