"""Predict the entities that a text speaks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need
from unmask.batch import Batch, Hidden, Loss, Targets
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts


@dataclass(frozen=True)
class Entities(Predicts):
    """The entity at each target, among the entities of the same text or of the whole batch.

    Paper: ERNIE of Tsinghua (Zhang et al. 2019); its formula has the entities of the text, its code those of the batch.
    Needs: the targets "entities", and the vectors of entities. Produces: a cross-entropy per target. Used by: ernie-thu.
    Differs from Tokens: the answers are vectors that are not trained, and only a few of them are compared.
    """

    among: Literal["text", "batch"] = "text"  # the entities that are compared
    width: int = 100  # of the entities' vectors; pretraining takes it from the data
    epsilon: float = 1e-12  # of the norm

    def __post_init__(self) -> None:
        require(self.width >= 1, "predict.*.width must be 1 or more, got {width}", width=self.width)

    @property
    def target(self) -> str | None:
        return "entities"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need("targets:entities", "it predicts the entities of a text"),
            Need("entity vectors", "it compares the vectors of entities"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"entity scores", *(["compared rows"] if self.among == "batch" else [])})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> EntitiesModule:
        return EntitiesModule(self, width, initial)


class EntitiesModule(nn.Module):
    def __init__(self, spec: Entities, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        self.dense = initial.layer(nn.Linear(width, spec.width))
        self.norm = nn.LayerNorm(spec.width, eps=spec.epsilon)

    def count(self, batch: Batch) -> Tensor:
        return self._targets(batch).weight.sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        targets = self._targets(batch)
        vectors = self._transformed(hidden.last.flatten(0, 1)[targets.at])
        scores, answer = self.compared(vectors, self._table(hidden)[targets.ids], batch, targets)
        losses = F.cross_entropy(scores.flatten(0, 1).float(), answer.flatten(), reduction="none")
        return Loss((losses * targets.weight).sum(), targets.weight.sum())

    def compared(self, vectors: Tensor, entities: Tensor, batch: Batch, targets: Targets) -> tuple[Tensor, Tensor]:
        """G n n, the score of each entity of a group at each of its targets, and G n, the number of the right one.

        The groups are the rows, or there is one group: the batch. An entity that several targets have counts once: at
        the first of them."""
        groups = 1 if self.spec.among == "batch" else batch.shape[0]
        used, numbers = ((x.view(groups, -1)) for x in (targets.weight > 0, targets.ids))
        same = (numbers[:, :, None] == numbers[:, None, :]) & used[:, None, :]
        if self.spec.among == "text":  # a row may hold several texts
            text = batch.example.flatten()[targets.where].view(groups, -1)
            near = (text[:, :, None] == text[:, None, :]) & used[:, None, :]
        else:
            near = used[:, None, :].expand_as(same)
        same = same & near
        first = same.int().argmax(2)  # the first target with the same entity
        place = torch.arange(numbers.shape[1], device=numbers.device).expand_as(numbers)
        kept = near & (first == place)[:, None, :]
        kept = kept | (torch.diag_embed(~used))  # an unused place compares only itself
        vectors, entities = vectors.view(groups, -1, vectors.shape[1]), entities.view(groups, -1, entities.shape[1])
        scores = (vectors @ entities.transpose(1, 2)).float().masked_fill(~kept, -torch.inf)
        return scores, torch.where(used, first, place)

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T E, the score of each entity of the graph at every position."""
        return self._transformed(hidden.last) @ self._table(hidden).T

    def _targets(self, batch: Batch) -> Targets:
        return batch.targets["entities"]

    def _transformed(self, x: Tensor) -> Tensor:
        return self.norm(F.gelu(self.dense(x)))

    def _table(self, hidden: Hidden) -> Tensor:
        assert hidden.table is not None, "the network has no entities"
        return hidden.table.to(hidden.last.dtype)
