"""Relative attention: a query is compared with keys and with their distances (Dai et al. 2019).

score(q, k) = ((q + u) . key + (q + v) . place(distance) + (q + s) . same-or-other-segment) / sqrt(head width)

No tensor of size T x K x D is ever made. The second product is computed for all distances, and each pair of tokens reads
the value of its distance: in a fused kernel on a GPU (fused_attention.py), by shifting rows on a CPU
(biased_attention.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.backbone import biased_attention, fused_attention
from unmask.batch import Batch, Record
from unmask.see import visible, visible_before


@dataclass(frozen=True)
class LayerMemory(Record):
    """The inputs of each layer for the last M tokens of the rows before."""

    layers: Tensor  # B L M D, the inputs of the layers
    real: Tensor  # B M, False where there is no token yet


@dataclass(frozen=True)
class AttentionSide(Record):
    """Which of the K keys the Q queries of one stream see. The keys of the memory come first."""

    seen: Tensor  # B Q K, 0: not seen; 1: seen, in the same segment (or without segments); 2: seen, in another segment
    end: Tensor  # B Q, the index after the last key that each query sees
    begin: Tensor  # B K, the first query that sees each key
    column: Tensor | None = None  # B Q, the index in `waves` of the first key's distance; None: T - 1, T - 2, ...


@dataclass(frozen=True)
class Relations(Record):
    """Who sees whom in a batch and its memory, and at what distance. It is made once, for all layers."""

    waves: Tensor  # G L D, all distances as waves, from K - 1 down to -T, or to 0; G is 1, or 2 with backward rows
    content: AttentionSide  # the content stream: all tokens
    query: AttentionSide | None = None  # the query stream: only the targets, which do not see themselves (XLNet)
    backward: Tensor | None = None  # B, True where a row holds its text in reverse order


def relate(batch: Batch, memory: LayerMemory | None, waves: Tensor, *, segments: bool, query: bool) -> Relations:
    """Who sees whom and at what distance. `query`: also for a query stream at the targets."""
    remembered = memory.real if memory is not None else batch.real[:, :0]
    known = remembered[:, None, :].expand(-1, batch.shape[1], -1)
    sees = torch.cat((known & batch.real[:, :, None], visible(batch)), 2)
    same = None
    if segments:  # the memory belongs to the first segment, as in XLNet's code
        segment = torch.cat((torch.zeros_like(remembered, dtype=torch.long), batch.segment), 1)
        same = batch.segment[:, :, None] == segment[:, None, :]
    content = stream_of(sees, same)
    asking = None
    if query:
        at = batch.targets["tokens"].at.view(batch.shape[0], -1) % batch.shape[1]
        strict = torch.cat((known & batch.real[:, :, None], visible_before(batch)), 2)
        alike = None if same is None else _rows(same, at)
        asking = stream_of(_rows(strict, at), alike).replace(column=batch.shape[1] - 1 - at)
    return Relations(waves, content, asking, batch.per_row.get("backward"))


def stream_of(sees: Tensor, same: Tensor | None) -> AttentionSide:
    """The side of queries in order. `sees`: B Q K, the keys that they see; `same`: the keys of their segment."""
    queries, keys = (torch.arange(size, device=sees.device, dtype=torch.int32) for size in sees.shape[1:])
    end = (sees * (keys + 1)).amax(2)
    begin = torch.where(sees, queries[:, None], len(queries)).amin(1)
    seen = sees.to(torch.uint8)
    return AttentionSide(seen if same is None else seen * (2 - same.to(torch.uint8)), end, begin)


def _rows(matrix: Tensor, at: Tensor) -> Tensor:
    """B Q K, the rows `at` (B Q) of a matrix B T K."""
    return matrix.gather(1, at[:, :, None].expand(-1, -1, matrix.shape[2]))


class RelativeAttention(nn.Module):
    """Multi-head attention by content, distance and segment."""

    stacked = {"key_value.weight": 2}  # this tensor holds several matrices, one below the other

    def __init__(self, width: int, heads: int, head: int, *, segments: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.head = heads, head
        self.dropout = dropout  # on attention weights, in training
        self.query = nn.Linear(width, heads * head, bias=False)
        self.key_value = nn.Linear(width, 2 * heads * head, bias=False)
        self.place = nn.Linear(width, heads * head, bias=False)
        self.out = nn.Linear(heads * head, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, head))  # u
        self.place_bias = nn.Parameter(torch.zeros(heads, head))  # v
        self.segment_bias = nn.Parameter(torch.zeros(heads, head)) if segments else None  # s
        self.segment = nn.Parameter(torch.zeros(2, heads, head)) if segments else None  # the same, another
        # the linear layer of each projection, and its rows there
        inner = heads * head
        self.projections = {
            "query": ("query", range(inner)), "key": ("key_value", range(inner)),
            "value": ("key_value", range(inner, 2 * inner)), "out": ("out", range(width)),
        }  # fmt: skip

    def forward(
        self, x: Tensor, asking: Tensor | None, memory: Tensor | None, relations: Relations
    ) -> tuple[Tensor, Tensor | None]:
        """The attention output of the content stream (B T D) and, if there is one, of the query stream (B Q D).

        `memory`: B M D, the inputs of this layer for the rows before."""
        read = x if memory is None else torch.cat((memory.to(x.dtype), x), 1)
        key_value = self._split(self.key_value(read), 2 * self.heads)  # B 2H K d
        place = self._split(self.place(relations.waves), self.heads)  # G H L d
        if relations.backward is not None:
            place = place[relations.backward.long()]
        found = self._look(x, key_value, place, relations.content)
        if asking is None or relations.query is None:
            return found, None
        return found, self._look(asking, key_value, place, relations.query)

    def _look(self, x: Tensor, key_value: Tensor, place: Tensor, stream: AttentionSide) -> Tensor:
        q = self._split(self.query(x), self.heads)  # B H Q d
        content, placed = (q + bias[:, None].to(q.dtype) for bias in (self.content_bias, self.place_bias))
        both = None
        if self.segment is not None and self.segment_bias is not None:
            both = (q + self.segment_bias[:, None]) @ self.segment.permute(1, 2, 0)  # B H Q 2
        dropped = self.dropout if self.training else 0.0
        # Windows has no Triton, and the kernels have no dropout: then plain operations are used
        if x.is_cuda and fused_attention.AVAILABLE and not dropped:
            found, _ = fused_attention.look(
                content, key_value, placed, place, both, stream.seen, stream.end, stream.begin, stream.column
            )
        else:
            found = biased_attention.look(content, key_value, placed, place, both, stream.seen, stream.column, dropped)
        gathered: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return gathered

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return x.unflatten(2, (heads, self.head)).transpose(1, 2)


def waves(farthest: int, nearest: int, width: int, clamp: int | None, device: torch.device) -> Tensor:
    """L D, the distances from `farthest` down to `nearest` as sines, then cosines. Larger distances than `clamp` become
    `clamp`."""
    distance = torch.arange(farthest, nearest - 1, -1, device=device, dtype=torch.float32)
    if clamp is not None:
        distance = distance.clamp(-clamp, clamp)
    angle = distance[:, None] * torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    return torch.cat((angle.sin(), angle.cos()), 1)
