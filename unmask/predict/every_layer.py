"""Predict tokens from every layer: the objective of the last layer, computed for the layers below it too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from unmask.axes import Objective
from unmask.init_weights import InitWeights
from unmask.predict.objective import Predicts
from unmask.predict.tokens import Tokens


@dataclass(frozen=True)
class EveryLayer(Predicts):
    """The same prediction from every layer except the last. Each layer has its own output weights, unless they are tied.

    Paper: the character Transformer (Al-Rfou et al. 2018). Needs: what its head needs. Produces: a loss per layer, NAME_1,
    NAME_2 and so on. Used by: char-transformer. Differs from Tokens: one loss for each layer below the last.
    """

    head: Tokens = field(default_factory=Tokens)  # what each layer predicts, and how

    @property
    def target(self) -> str:
        return self.head.target

    def each(self, name: str, layers: int) -> dict[str, Objective]:
        """The objectives of a network with this number of layers, from the first layer up."""
        return {f"{name}_{layer}": replace(self.head, layer=layer) for layer in range(1, layers)}

    def build(self, width: int, embedding: Tensor, initial: InitWeights) -> nn.Module:
        raise NotImplementedError("EveryLayer is not built itself: build the objectives of `each`")

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        raise NotImplementedError("EveryLayer has no cost itself: count the objectives of `each`")
