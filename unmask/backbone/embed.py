"""Embeddings: tokens, positions, segments and tasks as vectors."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.backbone.components import token_table
from unmask.backbone.protocols import ComponentsPart, Positions
from unmask.batch import TASK, Batch


class Norm(nn.LayerNorm):
    """Layer norm that computes in float32 and returns a tensor in the precision of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).to(x.dtype)


class Embed(nn.Module):
    """The sum of the token, position, segment and task embeddings. It may be narrower than the layers."""

    token_rows: ClassVar[tuple[str, ...]] = ("token.weight",)  # parameters with one row per token of the vocabulary

    def __init__(
        self, vocabulary: int, width: int, *, length: int, positions: Positions, segments: int, norm: bool, dropout: float,
        epsilon: float, scale: float = 1.0, tasks: int = 0, components: ComponentsPart | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.scale = scale  # of the token embeddings
        self.token = token_table(vocabulary, width, components)
        self.position = positions.embedding(length, width)
        self.segment = nn.Embedding(segments, width) if segments else None
        self.task = nn.Embedding(tasks, width) if tasks else None
        self.norm = Norm(width, eps=epsilon) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        x = self.token(batch.ids)
        if self.scale != 1.0:
            x = x * self.scale
        if self.position is not None:
            x = x + self.position(batch.position)
        if self.segment is not None:
            # a matrix product with few rows: its gradient is one product; the gradient of a lookup is a slow sum
            x = x + F.one_hot(batch.segment, len(self.segment.weight)).to(x.dtype) @ self.segment.weight
        if self.task is not None:
            task = F.one_hot(batch.per_row[TASK], len(self.task.weight)).to(x.dtype) @ self.task.weight  # B D
            x = x + task[:, None]
        embedded: Tensor = self.dropout(self.norm(x))
        return embedded  # B T D
