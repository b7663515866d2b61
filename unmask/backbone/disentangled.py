"""Disentangled attention: content and relative position have separate scores (He et al. 2020, DeBERTa).

score(i, j) = (q_i . k_j + q_i . place_key(i - j) + k_j . place_query(i - j)) / sqrt(3 x head width)

The paper writes the last distance as j - i. Its released code, and therefore its released weights, use i - j. All layers
share one dropout mask of the distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Part
from unmask.backbone.attention import AttentionMask
from unmask.batch import Batch
from unmask.errors import require

QKV = ("query", "key", "value")


@dataclass(frozen=True)
class Disentangled(Part):
    """Scores from content vectors and distance vectors. All layers share the table of distances (DeBERTa)."""

    reach: int = 512  # distances from -reach to reach - 1 have their own vectors; others use the nearest of them

    def __post_init__(self) -> None:
        require(self.reach >= 1, "backbone.attention.reach must be 1 or more, got {reach}", reach=self.reach)

    @property
    def dense(self) -> bool:
        return True

    @property
    def cached(self) -> bool:
        return False

    def build(self, width: int, heads: int, dropout: float) -> nn.Module:
        return DisentangledAttention(width, heads, dropout)

    def shared(self, width: int, heads: int, dropout: float) -> nn.Module:
        return Distances(self.reach, width, dropout)

    def flops(self, width: int, length: int) -> float:
        """Four linear layers, the scores and the weighted sums; two linear layers for the distances, and their scores."""
        distances = 2 * min(self.reach, length)
        return 8 * width**2 + 4 * length * width + 4 * distances * width + 4 * distances * width**2 / length


class Distances(nn.Module):
    """The table of distance vectors, and the row of the table for each pair of tokens."""

    def __init__(self, reach: int, width: int, dropout: float) -> None:
        super().__init__()
        self.reach = reach
        self.table = nn.Embedding(2 * reach, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """R D, the rows of the table that occur; and T T, the row for each query and key.

        The distance of two tokens of an example is the same in a packed row, so one T T matrix serves all rows."""
        length = batch.shape[1]
        near = min(self.reach, length)
        place = torch.arange(length, device=batch.ids.device)
        row = (place[:, None] - place + near).clamp(0, 2 * near - 1)
        return self.dropout(self.table.weight[self.reach - near : self.reach + near]).to(dtype), row


class DisentangledAttention(nn.Module):
    """Multi-head attention of one layer."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout  # dropout: on attention weights, in training
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # head by head: queries, keys and values
        self.query_bias = nn.Parameter(torch.zeros(width))
        self.value_bias = nn.Parameter(torch.zeros(width))
        self.place_key = nn.Linear(width, width, bias=False)
        self.place_query = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        # the linear layer of each projection, and its rows there: in `qkv`, each head has 3 x d rows
        d = width // heads
        whose = {
            name: [head * 3 * d + i * d + j for head in range(heads) for j in range(d)] for i, name in enumerate(QKV)
        }
        self.projections = {name: ("qkv", rows) for name, rows in whose.items()} | {"out": ("out", range(width))}

    def forward(
        self, x: Tensor, mask: AttentionMask, cache: tuple[Tensor, Tensor] | None = None, reads: Tensor | None = None
    ) -> Tensor:
        """B T D. `reads`: the vectors that keys and values come from; None: x."""
        assert mask.mask is not None, "disentangled attention needs a mask"
        assert mask.rotation is None, "disentangled attention does not rotate queries and keys"
        table, row = mask.prepared
        q = self._split(self.qkv(x))[0] + self._heads(self.query_bias)
        _, k, v = self._split(self.qkv(x if reads is None else reads))
        scores = (q @ k.transpose(2, 3) + self._by_distance(q, k, table, row)) / math.sqrt(3 * q.shape[3])
        weights = scores.float().masked_fill(~mask.mask, -math.inf).softmax(-1).to(x.dtype)
        found = F.dropout(weights, self.dropout, self.training) @ (v + self._heads(self.value_bias))
        gathered: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return gathered

    def _by_distance(self, q: Tensor, k: Tensor, table: Tensor, row: Tensor) -> Tensor:
        """B H T T, the scores of distances: content to position, and position to content."""
        key, query = (
            self._heads(layer(table)).transpose(0, 1) for layer in (self.place_key, self.place_query)
        )  # H R d
        rows = row.expand(*q.shape[:2], -1, -1)
        to_position = (q @ key.transpose(1, 2)).gather(3, rows)
        to_content = (k @ query.transpose(1, 2)).gather(3, rows.transpose(2, 3)).transpose(2, 3)
        return to_position + to_content

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """B T 3D to queries, keys and values, each B H T d."""
        q, k, v = x.unflatten(2, (self.heads, -1)).transpose(1, 2).chunk(3, 3)
        return q, k, v

    def _heads(self, x: Tensor) -> Tensor:
        """Split D into H d. A bias, D, becomes H 1 d."""
        found = x.unflatten(-1, (self.heads, -1))
        return found[:, None] if x.dim() == 1 else found
