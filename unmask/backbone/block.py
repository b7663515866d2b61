"""One layer of a Transformer: attention and feed-forward, each with a norm before it or after the residual sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.backbone.attention import AttentionMask
from unmask.backbone.embed import Norm

if TYPE_CHECKING:
    from unmask.backbone.transformer import Transformer

Activation = Literal["gelu", "gelu_tanh", "relu"]


class Block(nn.Module):
    """One layer. Adapters replace `after_attention` and `after_mlp`. `first`: it is the first layer of the network."""

    def __init__(self, spec: Transformer, *, first: bool = False) -> None:
        super().__init__()
        self.pre = spec.norm == "pre"
        self.attention: Any = spec.attention.build(spec.width, spec.heads, spec.attention_dropout)
        normed = spec.first_norm or not first
        self.attention_norm: nn.Module = Norm(spec.width, eps=spec.epsilon) if normed else nn.Identity()
        self.mlp = Feedforward(spec.width, spec.feedforward, spec.activation, spec.activation_dropout, gated=spec.gated)
        self.mlp_norm = Norm(spec.width, eps=spec.epsilon)
        self.after_attention: nn.Module = nn.Identity()
        self.after_mlp: nn.Module = nn.Identity()
        self.dropout = nn.Dropout(spec.drops)

    def forward(
        self, x: Tensor, mask: AttentionMask, cache: tuple[Tensor, Tensor] | None = None, reads: Tensor | None = None
    ) -> Tensor:
        """B T D. `reads`: the vectors that keys and values come from; None: x."""
        if self.pre:
            reads = None if reads is None else self.attention_norm(reads)
            found = self.attention(self.attention_norm(x), mask, cache, reads)
            x = x + self.after_attention(self.dropout(found))
            return x + self.after_mlp(self.dropout(self.mlp(self.mlp_norm(x))))
        x = self.attention_norm(x + self.after_attention(self.dropout(self.attention(x, mask, cache, reads))))
        return self.mlp_norm(x + self.after_mlp(self.dropout(self.mlp(x))))


class Feedforward(nn.Module):
    """Two linear layers with an activation between them, applied to each token separately.

    `gated`: a third linear layer is multiplied by the activation (Shazeer 2020). Its rows follow those of the first."""

    def __init__(self, width: int, inner: int, activation: Activation, dropout: float, *, gated: bool = False) -> None:
        super().__init__()
        self.gated = gated
        self.up = nn.Linear(width, 2 * inner if gated else inner)
        # this tensor holds several matrices, one below the other
        self.stacked = {"up.weight": 2} if gated else {}
        self.down = nn.Linear(inner, width)
        # the linear layer of each projection, and its rows there
        self.projections = {"up": ("up", range(self.up.out_features)), "down": ("down", range(width))}
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down(self.inner(x))
        return down

    def inner(self, x: Tensor, more: Tensor | None = None) -> Tensor:
        """The vectors between the two layers. `more`: is added before the activation."""
        x = self.up(x) if more is None else self.up(x) + more
        x, gate = x.chunk(2, -1) if self.gated else (x, None)
        x = activate(x, self.activation)
        inside: Tensor = self.dropout(x if gate is None else x * gate)
        return inside


def feedforward_flops(spec: Transformer) -> int:
    """Floating-point operations of the feed-forward layer per token."""
    return (6 if spec.gated else 4) * spec.width * spec.feedforward


def drop_bias(module: nn.Module) -> None:
    """Remove the bias of a linear layer or a norm. It does nothing to other modules."""
    if isinstance(module, nn.Linear | nn.LayerNorm):
        module.register_parameter("bias", None)


def activate(x: Tensor, activation: Activation) -> Tensor:
    """Apply the activation with this name."""
    if activation == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
