"""Losses that compare the vectors of the texts of an example: by class, by cosine, or with the other texts of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Part
from unmask.batch import Batch
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.class_weights import add_class_weights, check_class_weights
from unmask.predict.label import ANSWERS

PAIRS = "pair scores"  # the fact that a loss with classes gives
SAME = -1e4  # the score of a candidate that is left out; finite, so that no gradient becomes nan


@dataclass(frozen=True)
class PairClassLoss(Part):
    """The class of a pair, from [u; v; |u - v|] through one linear layer.

    Paper: Sentence-BERT (Reimers and Gurevych 2019). Needs: two texts and a class. Produces: a cross-entropy per example.
    Used by: Embed with loss=softmax. Differs from CosineLoss: the classes need no order.
    """

    classes: int = 2  # the number of classes
    weights: tuple[float, ...] = ()  # of the loss of each class; empty: all 1

    def __post_init__(self) -> None:
        require(self.classes >= 2, "a pair needs 2 classes or more, got {classes}", classes=self.classes)
        check_class_weights("a pair", self.weights, self.classes)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({PAIRS})

    def build(self, width: int, initial: InitWeights) -> PairClassModule:
        return PairClassModule(self, width, initial)


class PairClassModule(nn.Module):
    weights: Tensor | None

    def __init__(self, spec: PairClassLoss, width: int, initial: InitWeights) -> None:
        super().__init__()
        add_class_weights(self, spec.weights)
        self.out = initial.layer(nn.Linear(3 * width, spec.classes))

    def scores(self, vectors: Tensor) -> Tensor:
        """E classes. `vectors`: E 2 D; a D below the full width uses the columns of the first dimensions."""
        u, v, width = vectors[:, 0], vectors[:, 1], vectors.shape[-1]
        weight = self.out.weight.view(len(self.out.weight), 3, -1)[:, :, :width].flatten(1)
        joined = torch.cat((u, v, (u - v).abs()), -1).to(weight.dtype)  # weights may be loaded in bfloat16
        return F.linear(joined, weight, self.out.bias)

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        return F.cross_entropy(self.scores(vectors), batch.label, weight=self.weights, reduction="none")


@dataclass(frozen=True)
class CosineLoss(Part):
    """The squared difference of the cosine of a pair and its number.

    Paper: Sentence-BERT (Reimers and Gurevych 2019). Needs: two texts and a number, 0 (unlike) to 1 (alike). Produces: a
    squared error per example. Used by: Embed with loss=cosine. Differs from PairClassLoss: it has no weights of its own.
    """

    def build(self, width: int, initial: InitWeights) -> CosineModule:
        return CosineModule()


class CosineModule(nn.Module):
    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        return (
            F.cosine_similarity(vectors[:, 0], vectors[:, 1]) - batch.per_example[ANSWERS][:, 0].to(vectors.dtype)
        ).square()


@dataclass(frozen=True)
class InBatchLoss(Part):
    """Which of all texts of the batch belongs to the first text of an example. The second text does; the others are negatives.

    Paper: Henderson et al. 2017; SimCSE (Gao et al. 2021) with a text and itself. Needs: two texts; more texts of an example
    are hard negatives. Produces: a cross-entropy per example. Used by: Embed with loss=negatives, dropout or neighbour.
    Differs from CosineLoss: no number is needed, and larger batches are harder.
    """

    scale: float = 20.0  # cosines are multiplied by this: 1 / temperature

    def __post_init__(self) -> None:
        require(self.scale > 0, "scale must be over 0, got {scale}: it is 1 / temperature", scale=self.scale)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"compared rows"})

    def build(self, width: int, initial: InitWeights) -> InBatchModule:
        return InBatchModule(self)


class InBatchModule(nn.Module):
    def __init__(self, spec: InBatchLoss) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, vectors: Tensor, batch: Batch) -> Tensor:
        count, times, _ = vectors.shape
        unit = F.normalize(vectors, dim=-1)
        # the second texts first, so that the right candidate of example i is candidate i
        scores = unit[:, 0] @ unit[:, 1:].transpose(0, 1).flatten(0, 1).T * self.spec.scale
        return F.cross_entropy(
            scores.masked_fill(left_out(batch, count, times), SAME * self.spec.scale),
            torch.arange(count, device=scores.device),
            reduction="none",
        )


def left_out(batch: Batch, count: int, times: int) -> Tensor:
    """E x candidates, True where a candidate is no text, or is the same text as the first or the second text of the
    example: it is not a negative."""
    ids = torch.where(batch.real, batch.ids, -1).view(count, times, batch.shape[1])
    candidates = ids[:, 1:].transpose(0, 1).flatten(0, 1)
    same = (ids[:, :2, None] == candidates).all(-1).any(1)
    own = torch.eye(count, len(candidates), dtype=torch.bool, device=ids.device)
    return (same & ~own) | (candidates < 0).all(-1)
