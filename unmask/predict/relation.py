"""Predict the relation between two marked entities of a text."""

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
from unmask.predict.label import POOLS
from unmask.predict.objective import Predicts

ENTITIES: Final = ("head", "tail")  # the columns of the two entities; -1 on tokens outside


@dataclass(frozen=True)
class Relation(Predicts):
    """The class of a pair of entities, from the vector of the text and the mean vector of each entity.

    Paper: R-BERT (Wu and He 2019), without its new tokens around the entities. Needs: labels (the columns of the entities).
    Produces: a cross-entropy per example. Used by: models adapted to relations.
    Differs from Label: it knows which words of the text are meant.
    """

    classes: int = 2  # the number of relations
    pool: Literal["summary", "mean"] = "summary"  # of the text: the summary token, or the mean over all tokens
    dropout: float = 0.0  # before each layer
    weights: tuple[float, ...] = ()  # of the loss of each class; empty: all 1

    def __post_init__(self) -> None:
        require(self.classes >= 2, "a relation needs 2 classes or more, got {classes}", classes=self.classes)
        require(0 <= self.dropout < 1, "a relation's dropout must be in [0, 1), got {dropout}", dropout=self.dropout)
        check_class_weights("a relation", self.weights, self.classes)

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("labels", "it predicts the relation of each example"),
            Need("unpacked rows", "it reads two entities of each row"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"relation scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> RelationModule:
        return RelationModule(self, width, initial)


class RelationModule(nn.Module):
    weights: Tensor | None

    def __init__(self, spec: Relation, width: int, initial: InitWeights) -> None:
        super().__init__()
        add_class_weights(self, spec.weights)
        (self.pool,) = POOLS[spec.pool]
        self.dense = initial.layer(nn.Linear(width, width))  # of the text
        self.entity = initial.layer(nn.Linear(width, width))  # of both entities
        self.out = initial.layer(nn.Linear(3 * width, spec.classes))
        self.dropout = nn.Dropout(spec.dropout)

    def count(self, batch: Batch) -> Tensor:
        return batch.counted.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        scores = self.decode(hidden, batch).float()
        losses = F.cross_entropy(scores, batch.label, weight=self.weights, reduction="none")
        return Loss((losses * batch.counted).sum(), batch.counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E classes, the score of each relation. There is one example in a row."""
        parts = [self.dense(self.dropout(torch.tanh(self.pool(hidden.last, batch))))]
        for name in ENTITIES:
            inside = (batch.columns[name] >= 0).to(hidden.last.dtype)[..., None]  # B T 1
            mean = (hidden.last * inside).sum(1) / inside.sum(1).clamp(min=1)
            parts.append(self.entity(self.dropout(torch.tanh(mean))))
        return self.out(self.dropout(torch.cat(parts, 1)))
