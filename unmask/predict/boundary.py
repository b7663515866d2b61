"""Predict the tokens of a hidden span from the two tokens around it: SpanBERT's boundary objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.batch import Batch, Hidden, Loss, Targets
from unmask.errors import require
from unmask.initial import Initial


@dataclass(frozen=True)
class Boundary:
    """Each hidden token, from the nearest tokens left and right that are in sight and its place between them alone.

    Spans that touch count as one: their boundary must not be hidden itself. Paper: SpanBERT (Joshi et al. 2019).
    Needs: targets, and texts framed by special tokens. Produces: a cross-entropy per target. Used by: spanbert.
    Differs from Tokens: the vector at the token itself is not read.
    """

    places: int = 20  # in a span that are told apart; those after count as the last
    width: int = 200  # of the vector of a place
    epsilon: float = 1e-12  # of the norms

    def __post_init__(self) -> None:
        for name in ("places", "width"):
            require(getattr(self, name) >= 1, f"predict.*.{name} must be 1 or more, got {getattr(self, name)}")

    def build(self, width: int, embedding: Tensor, initial: Initial) -> BoundaryModule:
        return BoundaryModule(self, width, embedding, initial)

    def flops(self, width: int, embedding: int, vocabulary: int, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return share * 2 * ((2 * width + self.width) * width + width * embedding + embedding * vocabulary)


class BoundaryModule(nn.Module):
    def __init__(self, spec: Boundary, width: int, embedding: Tensor, initial: Initial) -> None:
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
        assert batch.targets is not None, "nothing was hidden"
        return batch.targets.weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        targets = batch.targets
        assert targets is not None, "nothing was hidden"
        losses = F.cross_entropy(self.decode(hidden, batch).float(), targets.ids, reduction="none")
        return Loss((losses * targets.weight).sum(), targets.weight.sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """N V, the scores of every token of the vocabulary at every target."""
        targets = batch.targets
        assert targets is not None, "nothing was hidden"
        vectors = hidden.last.flatten(0, 1)  # (B T) D
        left, right = around(targets, len(vectors))
        place = self.place((targets.where - left - 1).clamp(0, self.spec.places - 1)).to(vectors.dtype)
        x = self.first_norm(F.gelu(self.first(torch.cat((vectors[left], vectors[right], place), -1))))
        x = self.second_norm(F.gelu(self.second(x)))
        return F.linear(x, self.weight, self.bias)


def around(targets: Targets, places: int) -> tuple[Tensor, Tensor]:
    """N, for each target the nearest places before and after it that are not hidden, of so many in the flat batch."""
    here = torch.arange(places, device=targets.where.device)
    hidden = torch.zeros(places, device=here.device).scatter_reduce(0, targets.where, targets.weight, "amax") > 0
    before = torch.where(hidden, 0, here).cummax(0).values
    after = torch.where(hidden, places - 1, here).flip(0).cummin(0).values.flip(0)
    return before[targets.where], after[targets.where]
