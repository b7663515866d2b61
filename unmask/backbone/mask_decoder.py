"""The enhanced mask decoder: absolute positions are added just before the prediction (He et al. 2020, DeBERTa)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from unmask.axes import Part
from unmask.backbone.attention import AttentionMask
from unmask.backbone.block import feedforward_flops
from unmask.batch import Batch
from unmask.errors import require

if TYPE_CHECKING:
    from unmask.backbone.embed import Embed
    from unmask.backbone.transformer import Transformer


@dataclass(frozen=True)
class MaskDecoder(Part):
    """The last layer of the network, applied several times (DeBERTa).

    The first queries are the vectors of the layer before the last, plus learned positions. Later queries are the result
    of the step before. Keys and values always come from the layer before the last."""

    steps: int = 2  # the number of times that the last layer is applied

    def __post_init__(self) -> None:
        require(self.steps >= 1, "backbone.decoder.steps must be 1 or more, got {steps}", steps=self.steps)

    @property
    def bounded(self) -> bool:
        return True

    def build(self, spec: Transformer, blocks: nn.ModuleList, embed: Embed) -> nn.Module:
        return MaskDecoderModule(self.steps, spec, blocks)

    def flops(self, spec: Transformer, length: int) -> float:
        """Floating-point operations per token of one forward pass."""
        seen = spec.seen(spec.layers - 1, length)  # it applies the last layer
        return self.steps * (spec.attention.flops(spec.width, seen) + feedforward_flops(spec))


class MaskDecoderModule(nn.Module):
    def __init__(self, steps: int, spec: Transformer, blocks: nn.ModuleList) -> None:
        super().__init__()
        self.steps = steps
        self.block: tuple[Any, ...] = (blocks[-1],)  # in a tuple, because its parameters belong to the network
        self.position = nn.Embedding(spec.length, spec.width)

    def forward(self, layers: tuple[Tensor, ...], batch: Batch, mask: AttentionMask) -> Tensor:
        below = layers[-2]
        x = below + self.position(batch.position).to(below.dtype)
        for _ in range(self.steps):
            x = self.block[0](x, mask, reads=below)
        return x
