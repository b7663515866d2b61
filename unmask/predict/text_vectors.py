"""One vector per text, made of the vectors of its tokens, and trained by comparing the texts of an example."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.label import means, summaries
from unmask.predict.objective import Predicts
from unmask.predict.vector_losses import PAIRS, CosineLoss, InBatchLoss, PairClassLoss

Pool = Literal["summary", "mean", "max", "weighted"]
VECTORS = "text vectors"  # the fact that it gives


@dataclass(frozen=True)
class TextVectors(Predicts):
    """The vectors of texts that are read alone by one network, compared by a loss.

    Paper: Sentence-BERT (Reimers and Gurevych 2019); Matryoshka (Kusupati et al. 2022) for `dims`. Needs: a row per text.
    Produces: one loss per example. Used by: models adapted to embed.
    Differs from Label: two texts never see each other, so the vector of a text can be stored.
    """

    # the vector of the summary token, the mean or the maximum over all tokens, or their mean with learned weights
    pool: Pool = "mean"
    loss: PairClassLoss | CosineLoss | InBatchLoss = field(default_factory=InBatchLoss)  # how vectors are compared
    dims: tuple[int, ...] = ()  # the loss of the first dimensions is added, for each of these numbers

    def __post_init__(self) -> None:
        require(
            all(dim >= 1 for dim in self.dims),
            "dims must be numbers of dimensions, 1 or more, got {dims}",
            dims=self.dims,
        )

    @property
    def asked_at(self) -> AskedAt:
        return "examples"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("labels", "it compares the texts of each example"),
            Need("unpacked rows", "it reads one text in each row"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({VECTORS}) | self.loss.gives

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> TextVectorsModule:
        return TextVectorsModule(self, width, initial)


class TextVectorsModule(nn.Module):
    def __init__(self, spec: TextVectors, width: int, initial: InitWeights) -> None:
        super().__init__()
        require(
            max(spec.dims, default=0) <= width,
            "dims must not be over the width of the network, {width}, got {dims}: leave out the larger ones",
            width=width,
            dims=spec.dims,
        )
        self.spec = spec
        self.dims = sorted({width, *spec.dims}, reverse=True)  # the whole vector is always trained
        self.weigh = initial.layer(nn.Linear(width, 1)) if spec.pool == "weighted" else None
        self.loss = spec.loss.build(width, initial)

    def count(self, batch: Batch) -> Tensor:
        return batch.counted.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        vectors = self.decode(hidden, batch)
        with torch.autocast(vectors.device.type, enabled=False):  # in bfloat16, near cosines would become equal
            losses = torch.stack([self.loss(vectors[..., :dim], batch) for dim in self.dims]).sum(0)
        return Loss((losses * batch.counted).sum(), batch.counted.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E K D, the vector of each text of each example, not normalised; zeros where an example has fewer than K texts."""
        x = hidden.last.float()
        pooled = {"summary": summaries, "mean": means, "max": maxima, "weighted": self._weighted}[self.spec.pool](
            x, batch
        )
        vectors: Tensor = pooled * batch.real.any(1, keepdim=True)
        return vectors.view(len(batch.label), -1, x.shape[-1])

    def decode_pairs(self, hidden: Hidden, batch: Batch) -> Tensor:
        """E classes, the score of each class of each pair; only with a loss that has classes."""
        scores: Tensor = self.loss.scores(self.decode(hidden, batch))  # type: ignore[operator]
        return scores

    @property
    def decodes(self) -> dict[str, str]:
        """The method that computes the scores of each fact."""
        return {VECTORS: "decode", PAIRS: "decode_pairs"}

    def _weighted(self, x: Tensor, batch: Batch) -> Tensor:
        """B D, the mean over the tokens of each row with weights that are learned."""
        assert self.weigh is not None
        scores = (
            self.weigh(x.to(self.weigh.weight.dtype))[..., 0]
            .float()
            .masked_fill(~batch.real, torch.finfo(torch.float32).min)
        )
        return torch.einsum("bt,btd->bd", scores.softmax(-1), x)


def maxima(x: Tensor, batch: Batch) -> Tensor:
    """B D, the maximum of each dimension over the tokens of each row, which holds one example."""
    return x.masked_fill(~batch.real[..., None], torch.finfo(x.dtype).min).amax(1)
