"""Learn the vectors of a graph: a true triple must score higher, by a margin, than the same triple with another entity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unmask import chance
from unmask.errors import require
from unmask.knowledge.models import GraphModel, TransE

_DRAWN = 1 << 20  # numbers that are drawn at a time: it bounds the memory


@dataclass(frozen=True)
class Training:
    """How vectors are learned. The optimiser is Adagrad with one number per vector, so its state is small."""

    model: GraphModel = field(default_factory=TransE)
    dims: int = 100  # numbers in a vector
    epochs: int = 100
    rows: int = 1024  # triples in a step
    negatives: int = 8  # wrong triples for each true one
    margin: float = 1.0
    rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dims", "epochs", "rows", "negatives"):
            value = getattr(self, name)
            require(value >= 1, "--{name} must be 1 or more, got {value}", name=name, value=value)
        for name in ("margin", "rate"):
            value = getattr(self, name)
            require(value > 0, "--{name} must be over 0, got {value}", name=name, value=value)


@dataclass(frozen=True)
class Vectors:
    """The vectors of a graph."""

    entities: Tensor  # E D, of length 1
    relations: Tensor  # R D


def first_vectors(training: Training, entities: int, relations: int, device: str) -> Vectors:
    """Random vectors: uniform in 6 / sqrt(dims) to both sides of 0, then of length 1 (Bordes et al. 2013)."""
    tables = []
    for count, name in ((entities, "entity vectors"), (relations, "relation vectors")):
        drawn = chance.generator(training.seed, chance.purpose(name)).random((count, training.dims), dtype=np.float32)
        tables.append(F.normalize(torch.from_numpy(drawn).to(device) * 2 - 1))
    return Vectors(*tables)


def learn(vectors: Vectors, triples: Tensor, training: Training) -> Iterator[Tensor]:
    """Train the vectors in place. Yields the mean loss per triple after each epoch, as a tensor on the device.

    `triples`: M 3, on the device of the vectors."""
    learner = _Learner(vectors, training)
    purpose = chance.purpose("order of triples")
    places = torch.arange(len(triples), device=triples.device)
    for epoch in range(training.epochs):
        order = chance.draw(places, training.seed, purpose, epoch).argsort()
        total = torch.zeros((), device=triples.device)
        for begin in range(0, len(triples), learner.block):
            block = order[begin : begin + learner.block]
            total += learner.read(triples[block], begin, epoch)
        yield total / len(triples)


class _Learner:
    """The steps of one training, and the state of their optimiser."""

    def __init__(self, vectors: Vectors, training: Training) -> None:
        self.vectors, self.training = vectors, training
        self.squares = [table.new_full((len(table),), 1e-10) for table in (vectors.entities, vectors.relations)]
        steps = max(1, _DRAWN // (training.rows * training.negatives))
        self.block = steps * training.rows  # triples whose wrong entities are drawn together

    def read(self, triples: Tensor, begin: int, epoch: int) -> Tensor:
        """Train on the triples of a block; returns the sum of their losses."""
        count, seed = self.training.negatives, self.training.seed
        places = torch.arange(begin * count, (begin + len(triples)) * count, device=triples.device).view(-1, count)
        wrong = chance.below(len(self.vectors.entities), places, seed, chance.purpose("wrong entities"), epoch)
        total = torch.zeros((), device=triples.device)
        for row in range(0, len(triples), self.training.rows):
            step = slice(row, row + self.training.rows)
            # triples are in a new random order in each epoch, so it is random whether the head or the tail is replaced
            total += self._step(triples[step], wrong[step], as_head=row // self.training.rows % 2 == 0)
        return total

    def _step(self, triples: Tensor, wrong: Tensor, *, as_head: bool) -> Tensor:
        """One step. B triples, and K wrong entities for each: `wrong` is B K. They replace the heads, or the tails."""
        model, entities, relations = self.training.model, self.vectors.entities, self.vectors.relations
        heads, names, tails = triples.unbind(1)
        head, tail, other = (F.embedding(numbers, entities) for numbers in (heads, tails, wrong))
        relation = F.embedding(names, relations)
        false = (other, relation[:, None], tail[:, None]) if as_head else (head[:, None], relation[:, None], other)
        losses = (self.training.margin - model.score(head, relation, tail)[:, None] + model.score(*false)).relu()  # B K
        share = (losses > 0) / losses.shape[1]  # the gradient of the mean loss of a triple, by its K wrong scores
        by_head, by_relation, by_tail = model.slope(head, relation, tail, -share.sum(1, keepdim=True))
        wrong_head, wrong_relation, wrong_tail = model.slope(*false, share[..., None])
        by_wrong, kept = (wrong_head, wrong_tail) if as_head else (wrong_tail, wrong_head)
        kept = kept.sum(1)
        by_head, by_tail = (by_head, by_tail + kept) if as_head else (by_head + kept, by_tail)
        self._update(1, relations, names, by_relation + wrong_relation.sum(1))
        numbers = torch.cat((heads, tails, wrong.flatten()))
        self._update(0, entities, numbers, torch.cat((by_head, by_tail, by_wrong.flatten(0, 1))))
        entities.index_copy_(0, numbers, F.normalize(F.embedding(numbers, entities)))
        return losses.sum() / losses.shape[1]

    def _update(self, table: int, weights: Tensor, numbers: Tensor, gradients: Tensor) -> None:
        """Adagrad: the more a vector was moved before, the less it moves. It overwrites the gradients."""
        squares = self.squares[table]
        squares.index_add_(0, numbers, gradients.square().mean(1))
        rates = -self.training.rate * squares[numbers].rsqrt()
        weights.index_add_(0, numbers, gradients.mul_(rates[:, None]))
