"""Cross-attention: every token of a decoder reads from all tokens of its own example in the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.backbone.dense_attention import dense_attention
from unmask.batch import Batch

KeysValues = tuple[Tensor, Tensor]  # of the source, each B H S d


@dataclass(frozen=True)
class CrossMask:
    """Which tokens of the source each token of the decoder sees, in the form that the kernel reads."""

    mask: Tensor | None = None  # for the dense kernel: B 1 T S; B 1 1 S if all tokens of a row see the same
    # for the variable-length kernel: the cumulative lengths of the examples, in the decoder and in the source
    lengths: Tensor | None = None
    source_lengths: Tensor | None = None


def cross_mask(decoder: Batch, source: Batch, dtype: torch.dtype, *, dense: bool = False) -> CrossMask:
    """The mask for the fastest kernel. In both batches, the padding of a row comes after its examples."""
    if decoder.ids.is_cuda and dtype in (torch.bfloat16, torch.float16) and not dense:
        lengths, source_lengths = cross_lengths(decoder, source)
        return CrossMask(lengths=lengths, source_lengths=source_lengths)
    same = decoder.example[:, :, None] == source.example[:, None, :]
    return CrossMask(mask=(same | ~same.any(2, keepdim=True))[:, None])  # padding sees something: no row may be empty


def cross_lengths(decoder: Batch, source: Batch) -> tuple[Tensor, Tensor]:
    """The flat index where each example begins in the decoder and in the source, and the end of the batch. Places without an
    example are empty.

    Padding of the decoder belongs to the last example of its row, so that every token reads something. Padding of the source
    is an example without tokens in the decoder; if a row has only padding, it is the first example."""
    places = len(source.label) // source.shape[0]  # for examples, in a row
    last = decoder.example.amax(1, keepdim=True).clamp(min=0)
    outside = torch.where(source.real.any(1, keepdim=True), places, 0)
    return (
        _lengths(torch.where(decoder.real, decoder.example, last), places),
        _lengths(torch.where(source.real, source.example, outside), places),
    )


def _lengths(slot: Tensor, places: int) -> Tensor:
    """The cumulative numbers of tokens in each slot of each row."""
    count = torch.zeros(len(slot), places + 1, dtype=torch.int32, device=slot.device)
    count = count.scatter_add(1, slot, torch.ones_like(slot, dtype=torch.int32))
    return F.pad(count.flatten().cumsum(0, dtype=torch.int32), (1, 0))


class CrossAttention(nn.Module):
    """Multi-head attention from the tokens of a decoder to the tokens of a source."""

    stacked = {"kv.weight": 2}  # this tensor holds several matrices, one below the other

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout  # on attention weights, in training
        self.query = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        # the linear layer of each projection, and its rows there
        both = {"key": ("kv", range(width)), "value": ("kv", range(width, 2 * width))}
        self.projections = {"query": ("query", range(width)), **both, "out": ("out", range(width))}

    def forward(self, x: Tensor, mask: CrossMask, source: Tensor | KeysValues) -> Tensor:
        """B T D. `source`: the vectors of the source, B S D; or their keys and values, if they were computed before."""
        q = self.query(x).unflatten(2, (self.heads, -1))  # B T H d
        if mask.mask is None:
            assert isinstance(source, Tensor), "the variable-length kernel has no cache"
            found = self._fast(q, source, mask)
        else:
            k, v = self.keys_values(source) if isinstance(source, Tensor) else source
            q = q.reshape(len(k), -1, *q.shape[2:])  # texts of one source share its keys and values
            dropped = self.dropout if self.training else 0.0
            found = dense_attention(q.transpose(1, 2), k, v, mask.mask, dropout=dropped)
            found = found.transpose(1, 2)
        gathered: Tensor = self.out(found.reshape(x.shape))
        return gathered

    def keys_values(self, source: Tensor) -> KeysValues:
        """The keys and the values of the source, each B H S d."""
        k, v = self.kv(source).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        return k, v

    def _fast(self, q: Tensor, source: Tensor, mask: CrossMask) -> Tensor:
        """(B T) H d, computed with the kernel for examples of different lengths."""
        from torch.nn.attention.varlen import varlen_attn  # it imports the compiler, which takes seconds: only on a GPU

        assert mask.lengths is not None
        assert mask.source_lengths is not None, "the mask has no form that a kernel reads"
        k, v = self.kv(source).flatten(0, 1).unflatten(1, (2, self.heads, -1)).unbind(1)  # each (B S) H d
        longest = q.shape[1], source.shape[1]
        found: Any = varlen_attn(q.flatten(0, 1), k, v, mask.lengths, mask.source_lengths, *longest)
        gathered: Tensor = found
        return gathered


def cross_flops(width: int, length: int) -> float:
    """Floating-point operations per token of the decoder: two linear layers, the scores and the weighted sums. `length`: of the
    source. The two linear layers that read the source are not counted: see `source_flops`."""
    return 4 * width**2 + 4 * length * width


def source_flops(width: int) -> float:
    """Floating-point operations per token of the source, in each layer of the decoder: two linear layers."""
    return 4 * width**2
