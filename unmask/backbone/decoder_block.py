"""One layer of a decoder: self-attention, cross-attention to the source, and feed-forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from unmask.backbone.attention import AttentionMask
from unmask.backbone.block import Block
from unmask.backbone.cross_attention import CrossAttention, CrossMask, KeysValues
from unmask.backbone.embed import Norm

if TYPE_CHECKING:
    from unmask.backbone.transformer import Transformer


class DecoderBlock(nn.Module):
    """One layer. Adapters replace `after_attention` and `after_mlp`, as in a layer without cross-attention."""

    def __init__(self, spec: Transformer) -> None:
        super().__init__()
        below = Block(spec)
        self.pre = below.pre
        self.attention: Any = below.attention
        self.attention_norm = below.attention_norm
        self.cross = CrossAttention(spec.width, spec.heads, dropout=spec.attention_dropout)
        self.cross_norm = Norm(spec.width, eps=spec.epsilon)
        self.mlp, self.mlp_norm = below.mlp, below.mlp_norm
        self.after_attention: nn.Module = nn.Identity()
        self.after_mlp: nn.Module = nn.Identity()
        self.dropout = below.dropout

    def forward(
        self, x: Tensor, mask: AttentionMask, cross: CrossMask, source: Tensor | KeysValues,
        cache: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:  # fmt: skip
        """B T D. `source`: the vectors of the source, B S D, or its keys and values. `cache`: those of the decoder."""
        if self.pre:
            x = x + self.after_attention(self.dropout(self.attention(self.attention_norm(x), mask, cache)))
            x = x + self.dropout(self.cross(self.cross_norm(x), cross, source))
            return x + self.after_mlp(self.dropout(self.mlp(self.mlp_norm(x))))
        x = self.attention_norm(x + self.after_attention(self.dropout(self.attention(x, mask, cache))))
        x = self.cross_norm(x + self.dropout(self.cross(x, cross, source)))
        return self.mlp_norm(x + self.after_mlp(self.dropout(self.mlp(x))))
