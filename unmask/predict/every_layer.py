"""Predict tokens off every layer: what is read off the last, asked of those below it too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unmask.axes import Part
from unmask.predict.tokens import Tokens


@dataclass(frozen=True)
class EveryLayer(Part):
    """The same prediction read off every layer but the last, each with its own output unless it is tied.

    Paper: the character Transformer (Al-Rfou et al. 2018). Needs: targets. Produces: a loss per layer, NAME_1, NAME_2
    and so on. Used by: char-transformer. Differs from Tokens: as many losses as there are layers below the last.
    """

    head: Tokens = field(default_factory=Tokens)  # what each layer predicts, and how

    def each(self, name: str, layers: int) -> dict[str, Tokens]:
        """The objectives of a network of so many layers, from the first layer up."""
        return {f"{name}_{layer}": replace(self.head, layer=layer) for layer in range(1, layers)}
