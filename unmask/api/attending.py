"""What a model attends to: the weights of one layer and head, as rows for a table, and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from unmask import fonts, infer
from unmask.errors import require
from unmask.explanation.attention_picture import draw_attention
from unmask.progress import Tell, tell_notice


@dataclass(frozen=True)
class Attended:
    """The weights of one layer and head, or the mean of all heads."""

    layer: int
    head: int | None
    rows: tuple[str, ...]  # the tokens that read
    columns: tuple[str, ...]  # the tokens that are read
    weights: Tensor  # rows x columns

    def most(self, count: int = 3) -> list[tuple[str, list[tuple[str, float]]]]:
        """For each token that reads, the tokens that it reads most from."""
        best = self.weights.topk(min(count, len(self.columns)), 1)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found = [[(self.columns[i], value) for i, value in zip(*pair, strict=True)] for pair in pairs]
        return list(zip(self.rows, found, strict=True))

    def draw(self, picture: str | Path, *, font: str | Path | None = None, tell: Tell = None) -> None:
        """Draw the weights into a .png, .svg or .pdf file."""
        head = "mean of all heads" if self.head is None else f"head {self.head}"
        lacking = draw_attention(
            self.weights, self.rows, self.columns, f"layer {self.layer}, {head}", Path(picture), fonts.fonts(font)
        )
        tell_notice(fonts.notice(lacking) if lacking else None, tell)


def attended(found: infer.AttentionWeights, layer: int | None = None, head: int | None = None) -> Attended:
    """One layer and head of a text's attention weights, both counted from 1. None: the last layer; the mean of all heads."""
    layers = len(found.layers)
    layer = layers if layer is None else layer
    require(1 <= layer <= layers, "--layer must be from 1 to {layers}, got {layer}", layers=layers, layer=layer)
    heads = len(found.layers[layer - 1])
    require(head is None or 1 <= head <= heads, "--head must be from 1 to {heads}, got {head}", heads=heads, head=head)
    weights = found.layers[layer - 1]
    chosen = weights.mean(0) if head is None else weights[head - 1]
    return Attended(layer, head, found.tokens, found.source or found.tokens, chosen)
