"""Attention: one function over three facts (queries, keys, who sees whom), and the kernel that suits them.

Only the dense kernel can drop attention weights: training with `attention_dropout` over 0 takes it on every device. The
papers drop 10% of them. The recipes drop none, for speed, except the character Transformer's, whose paper drops 55%.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.attention.varlen import varlen_attn

from unmask.batch import Batch
from unmask.see import Pattern, visible


@dataclass(frozen=True)
class AttentionMask:
    """Who sees whom in one batch, in the form its kernel reads; made once and used by every layer."""

    longest: int
    mask: Tensor | None = None  # B 1 T T for the dense kernel; B 1 T M where M keys are kept
    lengths: Tensor | None = None  # cumulative, of the stretches of tokens, for the variable-length kernel
    causal: bool = False
    blocks: BlockMask | None = None  # for FlexAttention
    place: Tensor | None = None  # T, where the keys and values of these tokens go, if they are kept


def attention_mask(
    batch: Batch, pattern: Pattern, dtype: torch.dtype, *, compiled: bool = False, dense: bool = False
) -> AttentionMask:
    """Choose the kernel by what is known before any batch: the pattern, the device, the precision.

    `dense`: whatever these are, the dense kernel."""
    longest = batch.shape[1]
    fast = batch.ids.is_cuda and dtype in (torch.bfloat16, torch.float16) and not dense
    if fast and pattern in ("everything", "left"):
        return AttentionMask(longest, lengths=stretches(batch), causal=pattern == "left")
    if fast and compiled:  # FlexAttention is slow unless it is
        return AttentionMask(longest, blocks=torch.compile(blocks, dynamic=False)(batch))
    return AttentionMask(longest, mask=visible(batch)[:, None])


def blocks(batch: Batch) -> BlockMask:
    """Who sees whom, in the form that FlexAttention reads: blocks of the matrix that hold nothing are left out."""
    example, rank = batch.example, batch.rank
    assert rank is not None, "see has not been applied"

    def sees(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (example[b, q] == example[b, k]) & (rank[b, k] <= rank[b, q])

    rows, length = batch.shape
    return create_block_mask(sees, rows, None, length, length, device=example.device)


def stretches(batch: Batch) -> Tensor:
    """Where each example begins in the flattened batch, the padding of a row counting as one; a fixed size."""
    rows, length = batch.shape
    begins = torch.ones_like(batch.example, dtype=torch.bool)
    begins[:, 1:] = batch.example[:, 1:] != batch.example[:, :-1]
    number = begins.flatten().cumsum(0) - 1
    places = len(batch.summary) + rows + 1  # every example, the padding of every row, the end
    ends = torch.full((places,), rows * length, dtype=torch.int32, device=number.device)
    here = torch.arange(rows * length, dtype=torch.int32, device=number.device)
    return ends.scatter_reduce(0, number, here, "amin")


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout  # on attention weights, in training
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, view: AttentionMask, kept: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """`kept`: keys and values of the tokens before, each B H M D; those of these tokens are written there."""
        rows, length, width = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads)
        if view.lengths is not None:
            q, k, v = qkv.flatten(0, 1).unbind(1)  # each (B T) H D
            seen = _varlen(q, k, v, view)
        elif view.blocks is not None:
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each B H T D
            seen = flex_attention(q, k, v, block_mask=view.blocks).transpose(1, 2)  # type: ignore[union-attr]
        else:
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            if kept is not None:
                k, v = kept[0].index_copy_(2, view.place, k), kept[1].index_copy_(2, view.place, v)  # type: ignore[arg-type]
            dropped = self.dropout if self.training else 0.0
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=view.mask, dropout_p=dropped).transpose(1, 2)
        return self.out(seen.reshape(rows, length, width))


def _varlen(q: Tensor, k: Tensor, v: Tensor, view: AttentionMask) -> Tensor:
    extra = _CAUSAL if view.causal else {}
    return varlen_attn(q, k, v, view.lengths, view.lengths, view.longest, view.longest, **extra)  # type: ignore[arg-type, return-value]


# how this version of torch says "left to right"
_CAUSAL: dict[str, Any] = (
    {"is_causal": True} if "is_causal" in inspect.signature(varlen_attn).parameters else {"window_size": (-1, 0)}
)
