"""TransE and DistMult: how likely a triple is, as a formula of the vectors of its head, relation and tail.

`slope` is the gradient of the score, written out: with it a training step needs a third of the operations that automatic
differentiation takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from unmask.axes import Part
from unmask.errors import require

Slopes = tuple[Tensor, Tensor, Tensor]


class GraphModel(Protocol):
    """Scores of triples: higher is more likely. Vectors have the width in their last dimension."""

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor: ...

    def slope(self, head: Tensor, relation: Tensor, tail: Tensor, weight: Tensor) -> Slopes:
        """The gradients of the score by head, relation and tail, times a weight that has 1 as its last dimension."""

    def tails(self, head: Tensor, relation: Tensor, entities: Tensor) -> Tensor:
        """Q E: the scores of each entity as the tail of each question."""

    def heads(self, relation: Tensor, tail: Tensor, entities: Tensor) -> Tensor:
        """Q E: the scores of each entity as the head of each question."""


@dataclass(frozen=True)
class TransE(Part):
    """The relation is a translation: head + relation is near tail (Bordes et al. 2013)."""

    norm: Literal[1, 2] = 1  # of the distance: L1 or L2

    def __post_init__(self) -> None:
        require(self.norm in (1, 2), "--norm must be 1 or 2, got {norm}", norm=self.norm)

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return -torch.linalg.vector_norm(head + relation - tail, self.norm, -1)

    def slope(self, head: Tensor, relation: Tensor, tail: Tensor, weight: Tensor) -> Slopes:
        apart = head + relation - tail
        if self.norm == 1:
            up = apart.sign_() * weight
        else:
            up = apart * (weight / torch.linalg.vector_norm(apart, 2, -1, keepdim=True).clamp(min=1e-12))
        down = -up
        return down, down, up

    def tails(self, head: Tensor, relation: Tensor, entities: Tensor) -> Tensor:
        return -torch.cdist(head + relation, entities, self.norm)

    def heads(self, relation: Tensor, tail: Tensor, entities: Tensor) -> Tensor:
        return -torch.cdist(tail - relation, entities, self.norm)


@dataclass(frozen=True)
class DistMult(Part):
    """A product of three vectors, number by number (Yang et al. 2015). Head and tail may be exchanged."""

    def score(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return (head * relation * tail).sum(-1)

    def slope(self, head: Tensor, relation: Tensor, tail: Tensor, weight: Tensor) -> Slopes:
        weighted = relation * weight
        return weighted * tail, head * weight * tail, head * weighted

    def tails(self, head: Tensor, relation: Tensor, entities: Tensor) -> Tensor:
        return (head * relation) @ entities.T

    def heads(self, relation: Tensor, tail: Tensor, entities: Tensor) -> Tensor:
        return (relation * tail) @ entities.T
