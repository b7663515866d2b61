"""Predict a tag for some tokens, such as the first token of every word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.class_weights import add_class_weights, check_class_weights
from unmask.predict.crf import CRF
from unmask.predict.gelu_norm import check_norm, flops_before, layer_before
from unmask.predict.objective import Predicts, read_again

TAG: Final = "tag"  # the column of the tags of a task
PLACE: Final = "place"  # the column of the tokens that get a tag: the number of their word, otherwise -1


@dataclass(frozen=True)
class Tags(Predicts):
    """The tag of each word, predicted from the vector of one of its tokens.

    Paper: BERT (Devlin et al. 2019); with `crf`, Lample et al. (2016); with `dense`, CVT (Clark et al. 2018). Needs: labels (the columns of words and tags), or
    another column of the data with a class for some tokens.
    Produces: a cross-entropy per word; with `crf`, the negative log-likelihood of each sequence of tags.
    Used by: models adapted to tag; ernie-2. Differs from Label: one answer per word.
    """

    classes: int = 2  # the number of tags
    dropout: float = 0.0  # before the output
    crf: bool = False  # whether tags that follow each other have a score too
    dense: int | None = None  # width of a layer with ReLU before the output (CVT); none: there is no such layer
    # epsilon of a norm that follows a dense layer with GELU, both before the output and without a bias (ModernBERT); none: neither
    norm: float | None = None
    weights: tuple[float, ...] = ()  # of the loss of each tag; empty: all 1
    column: str = TAG  # the column of the right tags; -1 on tokens without a tag

    def __post_init__(self) -> None:
        require(self.classes >= 2, "tags need 2 classes or more, got {classes}", classes=self.classes)
        require(0 <= self.dropout < 1, "the dropout of tags must be in [0, 1), got {dropout}", dropout=self.dropout)
        check_class_weights("tags", self.weights, self.classes)
        require(
            not (self.crf and self.weights),
            "a CRF learns whole sequences, in which a single tag has no weight: set crf=false, or leave weights and balance out",
        )
        require(
            self.dense is None or self.dense >= 1,
            "the dense layer of tags must be none or 1 or more wide, got {dense}",
            dense=self.dense,
        )
        check_norm("tags", self.norm)
        require(
            self.dense is None or self.norm is None,
            "tags have one layer before their output, got dense={dense} and norm={norm}: leave one of them out",
            dense=self.dense,
            norm=self.norm,
        )

    @property
    def asked_at(self) -> AskedAt:
        return "tokens"

    @property
    def reads_decoder(self) -> bool:
        return self.column == TAG  # other columns belong to the tokens that the encoder reads

    @property
    def needs(self) -> tuple[Need, ...]:
        if self.column != TAG:
            return (Need(f"column:{self.column}", "it predicts its values"),)
        alone = Need("unpacked rows", "its tags of a row are one sequence", unless="crf=false")
        return (Need("labels", "it predicts the tag of each word"),) + (alone,) * self.crf

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"tag scores", "sequence scores"} if self.crf else {"tag scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> TagsModule:
        return TagsModule(self, width, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        read = width if self.dense is None else self.dense
        own = 2.0 * (read * self.classes + (0 if self.dense is None else width * self.dense))
        return own + flops_before(width, self.norm)


class TagsModule(nn.Module):
    weights: Tensor | None

    def __init__(self, spec: Tags, width: int, initial: InitWeights) -> None:
        super().__init__()
        add_class_weights(self, spec.weights)
        self.column, self.reads_decoder = spec.column, spec.reads_decoder
        read = width if spec.dense is None else spec.dense
        self.dense = None if spec.dense is None else initial.layer(nn.Linear(width, spec.dense))
        self.before = layer_before(width, spec.norm, initial)
        self.out = initial.layer(nn.Linear(read, spec.classes))
        self.dropout = nn.Dropout(spec.dropout)
        self.crf = CRF(spec.classes) if spec.crf else None

    def count(self, batch: Batch) -> Tensor:
        return (batch.columns[self.column] >= 0).sum().float()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        scores, tags = self._scores(hidden, batch), batch.columns[self.column]  # B T K, B T
        if self.crf is None:
            both = scores.flatten(0, 1), tags.flatten()
            losses = F.cross_entropy(*both, weight=self.weights, reduction="sum", ignore_index=-1)
            return Loss(losses, self.count(batch))
        order, real = _words_first(tags >= 0)
        losses = self.crf(_taken(scores, order), tags.gather(1, order).clamp(min=0), real)
        return Loss(losses.sum(), self.count(batch))

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T K, the score of each tag for each token. With a CRF: of the best sequence of tags that has this tag here."""
        scores = self._scores(hidden, batch)
        if self.crf is None:
            return scores
        order, real = _words_first(batch.columns[PLACE] >= 0)
        best = self.crf.best(_taken(scores, order), real)
        return torch.zeros_like(scores).scatter(1, order[..., None].expand_as(best), best)

    def _scores(self, hidden: Hidden, batch: Batch) -> Tensor:
        x = read_again(hidden, batch)[0] if self.reads_decoder else hidden.last
        x = x if self.before is None else self.before(x)
        x = x if self.dense is None else F.relu(self.dense(x))
        return self.out(self.dropout(x)).float()


def _words_first(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """B T, the order of a row's tokens with the chosen ones first; and B T, True on the places of the chosen ones."""
    order = chosen.long().argsort(dim=1, descending=True, stable=True)
    return order, chosen.gather(1, order)


def _taken(scores: Tensor, order: Tensor) -> Tensor:
    return scores.gather(1, order[..., None].expand_as(scores))
