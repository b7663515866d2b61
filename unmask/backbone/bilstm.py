"""BiLSTM: in every layer, one LSTM reads from the left and one from the right; the encoder of CoVe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unmask.axes import Need
from unmask.backbone.lstm import EMBEDDINGS
from unmask.backbone.lstm_layer import GATES, LSTMLayer, ReadingOrder
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.backbone.without_positions import TWO_SIDED, WithoutPositions
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.see import Pattern

VECTORS = 1.0  # fixed embeddings are drawn between this and its negative, about as large as word vectors


@dataclass(frozen=True)
class BiLSTM(WithoutPositions):
    """LSTM layers that read in both directions, over trained embeddings or over fixed word vectors (CoVe)."""

    layers: int = 2  # the number of layers
    cells: int = 300  # of each direction
    embedding: int = 300  # width of the embeddings
    length: int = 512  # the longest text that is read at once; the network has no positions and could read any length
    fixed: bool = False  # the embeddings never train: they are word vectors from a file
    joined: bool = False  # the last vectors are [embedding; layer] (CoVe), not the layer alone
    dropout: float = 0.2  # on the input and the output of every layer
    initial_embedding: float = EMBEDDINGS  # trained embeddings are first drawn between this and its negative

    def __post_init__(self) -> None:
        self.check_sizes("layers", "cells", "embedding", "length")
        check_dropout(self, "dropout", automatic=())
        require(
            self.initial_embedding > 0,
            "backbone.initial_embedding must be over 0, got {reach}: with equal embeddings all tokens are alike, so write 0.1 or 1",
            reach=self.initial_embedding,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        words = Need("word vectors", "its embeddings never train", unless="fixed=false")
        return (*TWO_SIDED, *((words,) if self.fixed else ()))

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "one-way layers", "no summary"})

    @property
    def one_way(self) -> int:
        """The highest layer in which each half of the vectors sees one direction: the first, because all others read both."""
        return 1

    @property
    def direction(self) -> int:
        """The width of each direction."""
        return self.cells

    @property
    def width(self) -> int:
        """The width of the last vectors."""
        return 2 * self.cells + (self.embedding if self.joined else 0)

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> BiLSTMModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return BiLSTMModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass. The length and `asked` have no effect."""
        inputs = [self.embedding, *[2 * self.cells] * (self.layers - 1)]
        return float(sum(2 * 2 * GATES * self.cells * (width + self.cells) for width in inputs))


class FixedTable(nn.Module):
    """Word vectors that never train: a buffer, so that no optimiser and no way of tuning finds them."""

    weight: Tensor

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(vocabulary, width))

    def forward(self, ids: Tensor) -> Tensor:
        return nn.functional.embedding(ids, self.weight)


class TableEmbed(nn.Module):
    """Token embeddings without positions, fixed or trained."""

    token_rows: ClassVar[tuple[str, ...]] = ("token.weight",)  # tensors with one row per token of the vocabulary

    def __init__(self, vocabulary: int, width: int, reach: float, *, fixed: bool = False) -> None:
        super().__init__()
        self.token: FixedTable | nn.Embedding
        self.token = FixedTable(vocabulary, width) if fixed else nn.Embedding(vocabulary, width)
        reach = VECTORS if fixed else reach
        nn.init.uniform_(self.token.weight, -reach, reach)
        self.segment = None

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.token(ids).to(compute_dtype(self.token.weight))
        return found


class BiLSTMModule(nn.Module):
    """The network itself."""

    endless = False
    reach = None  # there are no distances
    can_cache = False

    def __init__(self, spec: Any, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec = spec
        self.embed: Any = embed or TableEmbed(vocabulary, spec.embedding, spec.initial_embedding, fixed=spec.fixed)
        inputs = [spec.embedding, *[2 * spec.cells] * (spec.layers - 1)]
        self.left, self.right = (nn.ModuleList(LSTMLayer(width, spec.cells) for width in inputs) for _ in range(2))
        self.dropout = nn.Dropout(spec.dropout)
        self.compiled = False

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one: none, because the layers are fused kernels already."""
        return []

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, from the first layer up. All other modules count as embeddings."""
        return [list(pair) for pair in zip(self.left, self.right, strict=True)]

    def first_state(self, rows: int) -> None:
        """The memory before the first batch of training: None, because a row begins with empty cells."""

    def forward(self, batch: Batch, state: Any = None) -> tuple[Hidden, Any]:
        layers, _ = self.read_layers(batch)
        if self.spec.joined:
            layers = [*layers, torch.cat((layers[0], layers[-1]), 2)]
        return Hidden(tuple(layers)), state

    def read_layers(self, batch: Batch) -> tuple[list[Tensor], list[Tensor]]:
        """The embeddings and the outputs of every layer; and for each layer, B D, what both directions know at their end."""
        orders = ReadingOrder.left(batch), ReadingOrder.right(batch)
        layers, ends = [self.embed(batch.ids)], []
        for sides in zip(self.left, self.right, strict=True):
            fed = self.dropout(layers[-1])
            read = [side(order.to_steps(fed))[0] for side, order in zip(sides, orders, strict=True)]
            both = torch.cat([order.to_places(x) for order, x in zip(orders, read, strict=True)], 2)
            layers.append(self.dropout(both) * batch.real[:, :, None])  # padding, which is read last, has seen the text
            last = (orders[0].lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.spec.cells)
            ends.append(torch.cat([x.gather(1, last)[:, 0] for x in read], 1))
        return layers, ends
