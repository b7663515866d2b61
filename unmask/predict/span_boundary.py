"""Predict the tokens of a hidden span from the two tokens around it: SpanBERT's boundary objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need
from unmask.batch import Batch, Hidden, Loss
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts, reads_targets
from unmask.predict.token_losses import token_losses


@dataclass(frozen=True)
class SpanBoundary(Predicts):
    """Each hidden token, from the nearest visible tokens left and right of its span and its place in the span.

    Neighbouring spans count as one span, because a boundary token must be visible. Both boundaries are tokens of the text:
    a span at the beginning or the end of its text, next to a special token, is left out, as in SpanBERT's code.
    Paper: SpanBERT (Joshi et al. 2019). Needs: targets. Produces: a cross-entropy per target between two boundaries.
    Used by: spanbert. Differs from Tokens: the vector at the token itself is not read.
    """

    places: int = 20  # the number of places in a span that have their own vector; later places use the last one
    width: int = 200  # of the vector of a place in a span
    epsilon: float = 1e-12  # of the norms

    def __post_init__(self) -> None:
        for name in ("places", "width"):
            require(
                getattr(self, name) >= 1,
                "predict.*.{name} must be 1 or more, got {getattr}",
                name=name,
                getattr=getattr(self, name),
            )

    @property
    def target(self) -> str:
        return "tokens"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            reads_targets("tokens", query=False)[0],
            Need("covered", "its boundaries must not have seen the hidden tokens"),
            Need("in the text", "it reads the tokens around a hidden span"),
        )

    def around(self, batch: Batch) -> Around:
        return around(batch)

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> SpanBoundaryModule:
        return SpanBoundaryModule(self, width, embedding, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return share * 2 * ((2 * width + self.width) * width + width * embedding + embedding * vocabulary)


class SpanBoundaryModule(nn.Module):
    token_rows: ClassVar[tuple[str, ...]] = ("weight", "bias")  # parameters with one row per token of the vocabulary

    def __init__(self, spec: SpanBoundary, width: int, embedding: Tensor, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        self.place = nn.Embedding(spec.places, spec.width)
        initial.draw(self.place.weight)
        self.first = initial.layer(nn.Linear(2 * width + spec.width, width))
        self.first_norm = nn.LayerNorm(width, eps=spec.epsilon)
        self.second = initial.layer(nn.Linear(width, embedding.shape[1]))
        self.second_norm = nn.LayerNorm(embedding.shape[1], eps=spec.epsilon)
        self.weight = embedding
        self.bias = nn.Parameter(torch.zeros(len(embedding)))

    def count(self, batch: Batch) -> Tensor:
        return around(batch).weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        near, targets = around(batch), batch.targets["tokens"]
        scores = self._scores(hidden.last.flatten(0, 1), near.left, near.right, targets.where)
        losses = token_losses(scores, targets.ids)
        return Loss((losses * near.weight).sum(), near.weight.sum())

    def _scores(self, vectors: Tensor, left: Tensor, right: Tensor, where: Tensor) -> Tensor:
        """N V, the scores of every token of the vocabulary at every target. `vectors`: (B T) D, of all tokens."""
        place = self.place((where - left - 1).clamp(0, self.spec.places - 1)).to(vectors.dtype)
        x = self.first_norm(F.gelu(self.first(torch.cat((vectors[left], vectors[right], place), -1))))
        x = self.second_norm(F.gelu(self.second(x)))
        return F.linear(x, self.weight, self.bias)


class Around(NamedTuple):
    """The boundaries of each target."""

    left: Tensor  # N, flat index of the nearest token before it that is not hidden
    right: Tensor  # N, flat index of the nearest token after it that is not hidden
    weight: Tensor  # N, 0.0 at unused places, and where a boundary is not a token of the target's text


def around(batch: Batch) -> Around:
    """The boundaries of each target. A target without boundaries gets any index, with weight 0."""
    targets = batch.targets["tokens"]
    count, (rows, length) = batch.ids.numel(), batch.shape
    place = torch.arange(count, device=targets.where.device).view(rows, length)
    first = place[:, :1]
    hidden = torch.zeros(count, device=place.device).scatter_reduce(0, targets.where, targets.weight, "amax") > 0
    hidden = hidden.view(rows, length)
    before = torch.where(hidden, first - 1, place).cummax(1).values.flatten()[targets.where]
    after = torch.where(hidden, first + length, place).flip(1).cummin(1).values.flip(1).flatten()[targets.where]
    left, right, row = before.clamp(min=0), after.clamp(max=count - 1), targets.where // length
    text = torch.where(batch.text, batch.example, -1).flatten()
    inside = (before // length == row) & (after // length == row)
    inside &= (text[left] == text[targets.where]) & (text[right] == text[targets.where])
    return Around(left, right, targets.weight * inside)
