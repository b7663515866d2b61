"""Predict which tokens were replaced: ELECTRA's discriminator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import AskedAt, Need
from unmask.batch import Batch, Hidden, Loss
from unmask.init_weights import InitWeights, glorot
from unmask.predict.objective import Predicts


@dataclass(frozen=True)
class Replaced(Predicts):
    """Whether each token is the original, or was replaced by a generator.

    Paper: ELECTRA (Clark et al. 2020). Needs: a generator's replacements. Produces: a binary cross-entropy per token;
    a replacement that equals the original counts as original. Used by: electra.
    Differs from Tokens: two classes, not a vocabulary; and a prediction at every token.
    """

    where: Literal["all", "hidden"] = "all"  # every token, or only those that were hidden (ELECTRA 15%)
    # initial weights of the output layer: as in the other layers, or Glorot's, as in the released code. With "layers",
    # training soon collapses: all tokens get the same vector
    initial: Literal["layers", "glorot"] = "glorot"

    @property
    def asked_at(self) -> AskedAt:
        return "tokens" if self.where == "all" else "targets"

    @property
    def target(self) -> str:
        return "tokens"

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("original", "it detects the tokens that a generator replaced"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"original scores"})

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> ReplacedModule:
        return ReplacedModule(self, width, initial)

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row, in one forward pass."""
        return (1.0 if self.where == "all" else share) * (2 * width**2 + 2 * width)


class ReplacedModule(nn.Module):
    def __init__(self, spec: Replaced, width: int, initial: InitWeights) -> None:
        super().__init__()
        self.spec = spec
        self.dense = initial.layer(nn.Linear(width, width))
        self.out = (glorot if spec.initial == "glorot" else initial.layer)(nn.Linear(width, 1))

    def count(self, batch: Batch) -> Tensor:
        return self._counted(batch).sum()

    def forward(self, hidden: Hidden, batch: Batch) -> Loss:
        assert batch.original is not None, "no generator has replaced anything"
        counted = self._counted(batch)
        if self.spec.where == "all":
            scores, replaced = self.decode(hidden, batch).flatten(), (batch.ids != batch.original).flatten()
        else:
            targets = batch.targets["tokens"]
            scores = self._scores(hidden.last.flatten(0, 1)[targets.where])
            replaced = batch.ids.flatten()[targets.where] != targets.ids
        losses = F.binary_cross_entropy_with_logits(scores.float(), replaced.float(), reduction="none")
        return Loss((losses * counted).sum(), counted.sum(), positive=(replaced * counted).sum())

    def decode(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T, the score of "replaced" for each token."""
        return self._scores(hidden.last)

    def original(self, hidden: Hidden, batch: Batch) -> Tensor:
        """B T, the logarithm of the probability that each token is the original."""
        return F.logsigmoid(-self.decode(hidden, batch).float())

    def _counted(self, batch: Batch) -> Tensor:
        if self.spec.where == "all":
            return batch.real.flatten().float()
        return batch.targets["tokens"].weight

    def _scores(self, x: Tensor) -> Tensor:
        return self.out(F.gelu(self.dense(x)))[..., 0]
