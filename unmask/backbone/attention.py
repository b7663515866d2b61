"""Full attention: every token reads from all tokens that it sees, with the fastest kernel for the mask.

Only the dense kernel has dropout of attention weights, so training with `attention_dropout` above 0 uses it on every
device. Most papers drop 10% of the weights. The recipes drop none, for speed; the one exception is the character
Transformer, whose paper drops 55%.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from unmask.axes import Part
from unmask.backbone.dense_attention import dense_attention
from unmask.backbone.rotary import ROTATION, rotated
from unmask.batch import Batch
from unmask.see import Pattern, near, visible


@dataclass(frozen=True)
class AttentionMask:
    """Who sees whom in one batch, in the form that the kernel reads. It is made once, for all layers."""

    longest: int  # the largest possible number of tokens in an example
    mask: Tensor | None = None  # for the dense kernel: B 1 T T; B 1 T M with a cache of M places
    lengths: Tensor | None = None  # for the variable-length kernel: the cumulative lengths of the examples
    causal: bool = False  # for the variable-length kernel: a token sees only itself and the tokens before
    window: int | None = None  # for the variable-length kernel: how far a token sees to each side; None: to the end
    blocks: BlockMask | None = None  # for FlexAttention
    place: Tensor | None = None  # T, the places of these tokens in the cache
    prepared: Any = None  # the result of the attention part's shared module
    rotation: tuple[Tensor, Tensor] | None = None  # cosines and sines for queries and keys, each B T d/2; None: none


def attention_mask(
    batch: Batch, pattern: Pattern, dtype: torch.dtype, *, compiled: bool = False, dense: bool = False
) -> AttentionMask:
    """The mask for the fastest kernel. The choice depends only on the pattern, the device and the precision.

    `dense`: always use the dense kernel."""
    longest = batch.shape[1]
    fast = batch.ids.is_cuda and dtype in (torch.bfloat16, torch.float16) and not dense
    if fast and pattern in ("everything", "left"):
        return AttentionMask(longest, lengths=stretches(batch), causal=pattern == "left")
    if fast and compiled:  # FlexAttention is slow if it is not compiled
        return AttentionMask(longest, blocks=torch.compile(blocks, dynamic=False)(batch))
    return AttentionMask(longest, mask=visible(batch)[:, None])


def within(mask: AttentionMask, batch: Batch, window: int, key: Tensor) -> AttentionMask:
    """The mask of a layer in which a token sees only tokens that are at most `window` positions away.

    `key`: the position of every key, B K."""
    if mask.mask is not None:
        return replace(mask, mask=mask.mask & near(batch.position, key, window)[:, None])
    if mask.blocks is not None:
        return replace(mask, blocks=torch.compile(blocks, dynamic=False)(batch, window))
    return replace(mask, window=window)


def blocks(batch: Batch, window: int | None = None) -> BlockMask:
    """The mask for FlexAttention, which skips blocks in which no token sees another."""
    example, rank, position = batch.example, batch.rank, batch.position
    assert rank is not None, "see has not been applied"

    def sees(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (example[b, q] == example[b, k]) & (rank[b, k] <= rank[b, q])

    def sees_near(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return sees(b, h, q, k) & ((position[b, q] - position[b, k]).abs() <= (window or 0))

    rows, length = batch.shape
    rule = sees if window is None else sees_near
    return create_block_mask(rule, rows, None, length, length, device=example.device)


def stretches(batch: Batch) -> Tensor:
    """The flat index where each example begins. The padding of a row counts as an example. The number of entries is
    fixed; unused ones are the end of the batch."""
    rows, length = batch.shape
    begins = torch.ones_like(batch.example, dtype=torch.bool)
    begins[:, 1:] = batch.example[:, 1:] != batch.example[:, :-1]
    number = begins.flatten().cumsum(0) - 1
    places = len(batch.summary) + rows + 1  # all examples, the padding of each row, and the end
    ends = torch.full((places,), rows * length, dtype=torch.int32, device=number.device)
    here = torch.arange(rows * length, dtype=torch.int32, device=number.device)
    return ends.scatter_reduce(0, number, here, "amin")


@dataclass(frozen=True)
class Full(Part):
    """Multi-head attention to all visible tokens (Vaswani et al. 2017)."""

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({ROTATION})

    @property
    def dense(self) -> bool:
        return False

    @property
    def cached(self) -> bool:
        return True

    def build(self, width: int, heads: int, dropout: float) -> nn.Module:
        return Attention(width, heads, dropout=dropout)

    def shared(self, width: int, heads: int, dropout: float) -> None:
        return None

    def flops(self, width: int, length: int) -> float:
        """Four linear layers, the scores and the weighted sums."""
        return 8 * width**2 + 4 * length * width


class Attention(nn.Module):
    """Multi-head attention of one layer."""

    stacked = {"qkv.weight": 3}  # this tensor holds several matrices, one below the other

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout  # on attention weights, in training
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        # the linear layer of each projection, and its rows there
        stacked = {name: ("qkv", range(i * width, (i + 1) * width)) for i, name in enumerate(("query", "key", "value"))}
        self.projections = stacked | {"out": ("out", range(width))}

    def forward(
        self, x: Tensor, mask: AttentionMask, cache: tuple[Tensor, Tensor] | None = None, reads: Tensor | None = None
    ) -> Tensor:
        """B T D. `cache`: keys and values of earlier tokens, each B H M D; those of the new tokens are written into it.

        `reads`: the vectors that keys and values come from; None: x."""
        rows, length, width = x.shape
        qkv = self.qkv(x)
        if reads is not None:
            qkv = torch.cat((qkv[..., :width], self.qkv(reads)[..., width:]), 2)
        qkv = qkv.view(rows, length, 3, self.heads, width // self.heads)
        if mask.rotation is not None:
            qkv = rotated(qkv, *mask.rotation)
        found = self._dense(qkv, mask, cache) if mask.mask is not None else _fast(qkv, mask)
        gathered: Tensor = self.out(found.reshape(rows, length, width))
        return gathered

    def _dense(self, qkv: Tensor, mask: AttentionMask, cache: tuple[Tensor, Tensor] | None) -> Tensor:
        """B T H d, computed with the kernel that reads a mask."""
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each B H T d
        if cache is not None:
            assert mask.place is not None, "the mask has no places in the cache for these tokens"
            k, v = cache[0].index_copy_(2, mask.place, k), cache[1].index_copy_(2, mask.place, v)
        assert mask.mask is not None, "the mask has no form that this kernel reads"
        dropped = self.dropout if self.training else 0.0
        return dense_attention(q, k, v, mask.mask, dropout=dropped).transpose(1, 2)


def _fast(qkv: Tensor, mask: AttentionMask) -> Tensor:
    """Queries, keys and values (B T 3 H d) to B T H d or (B T) H d, computed with a kernel that reads no mask."""
    if mask.blocks is not None:
        return _flex(qkv, mask.blocks)
    from torch.nn.attention.varlen import varlen_attn  # it imports the compiler, which takes seconds: only on a GPU

    assert mask.lengths is not None, "the mask has no form that a kernel reads"
    q, k, v = qkv.flatten(0, 1).unbind(1)  # each (B T) H d
    far = -1 if mask.window is None else mask.window  # -1: to the end
    window = (far, 0 if mask.causal else far)  # how far a token sees to the left and to the right
    found: Any = varlen_attn(q, k, v, mask.lengths, mask.lengths, mask.longest, mask.longest, window_size=window)
    gathered: Tensor = found
    return gathered


def _flex(qkv: Tensor, blocks: BlockMask) -> Tensor:
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each B H T d
    found: Any = flex_attention(q, k, v, block_mask=blocks)
    gathered: Tensor = found.transpose(1, 2)
    return gathered
