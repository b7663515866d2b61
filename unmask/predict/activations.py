"""Penalties on the vectors of a recurrent network: large vectors, and vectors that change fast (Merity et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from unmask.axes import AskedAt
from unmask.batch import Batch, Hidden, Loss
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts


class Penalty(Predicts):
    """Base class of penalties: they are computed at all tokens and predict nothing."""

    @property
    def asked_at(self) -> AskedAt:
        return "tokens"

    @property
    def penalty(self) -> bool:
        return True


@dataclass(frozen=True)
class LargeVectors(Penalty):
    """The mean square of the vectors that predict tokens, after dropout (activation regularisation).

    Paper: Merity et al. 2017, arXiv:1708.01009. Needs: nothing. Produces: a penalty per token.
    Used by: awd-lstm. Differs from weight decay: it limits vectors, not weights.
    """

    def build(self, width: int, embedding: Any, initial: InitWeights) -> LargeVectorsModule:
        return LargeVectorsModule()


class LargeVectorsModule(nn.Module):
    def count(self, batch: Batch) -> Tensor:
        return (batch.decoder or batch).real.float().sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        size = hidden.for_prediction.float().square().mean(-1)  # B T
        return Loss((size * (batch.decoder or batch).real).sum(), self.count(batch))


@dataclass(frozen=True)
class FastVectors(Penalty):
    """The mean square of the change of the last layer from a token to the next (temporal activation regularisation).

    Paper: Merity et al. 2017, arXiv:1708.01009. Needs: nothing. Produces: a penalty per pair of neighbouring tokens.
    Used by: awd-lstm. Differs from LargeVectors: it reads vectors before dropout, and their differences.
    """

    def build(self, width: int, embedding: Any, initial: InitWeights) -> FastVectorsModule:
        return FastVectorsModule()


class FastVectorsModule(nn.Module):
    def count(self, batch: Batch) -> Tensor:
        return _neighbours(batch).float().sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        change = hidden.last.float().diff(dim=1).square().mean(-1)  # B T-1
        return Loss((change * _neighbours(batch)).sum(), self.count(batch))


def _neighbours(batch: Batch) -> Tensor:
    """B T-1, whether a token and the one after it belong to the same example."""
    return batch.real[:, 1:] & (batch.example[:, 1:] == batch.example[:, :-1])
