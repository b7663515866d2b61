"""TwoWayLSTM: one stack of LSTM layers reads from the left, another from the right; words are read by their spelling (ELMo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.axes import Need
from unmask.backbone.auto_dropout import Dropout, dropout_for
from unmask.backbone.lstm_layer import GATES, LSTMLayer, ReadingOrder
from unmask.backbone.spelling_embed import SpellingEmbed
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.backbone.without_positions import TWO_SIDED, WithoutPositions
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.see import Pattern

CHARACTERS = 50  # of a word, with the symbols of its begin and its end


@dataclass(frozen=True)
class TwoWayLSTM(WithoutPositions):
    """Two stacks of LSTM layers that share only the embeddings (ELMo).

    The first half of every vector sees the tokens before and its own, the second half its own and the tokens after. Cells
    begin with zeros in every row: those of the second stack could only be carried from text that was not read yet."""

    layers: int = 2  # in each direction
    width: int = 1024  # of every vector: half from each direction
    cells: int = (
        4096  # of each layer in each direction; their output is projected to half of `width`, unless it has this width
    )
    length: int = 512  # the longest text that is read at once; the network has no positions and could read any length
    characters: int = 16  # width of the vector of a character
    filters: tuple[int, ...] = (32, 32, 64, 128, 256, 512, 1024)  # convolutions over 1, 2, 3 ... characters
    highways: int = 2  # layers between the convolutions and the projection
    clip: float | None = None  # largest cell and projected output; a number makes training much slower
    dropout: Dropout = (
        0.1  # on the input of every layer and on the output of the last; auto: by how often the text is read
    )

    def __post_init__(self) -> None:
        self.check_sizes("layers", "width", "cells", "length", "characters")
        require(
            self.width % 2 == 0,
            "backbone.width must be even, got {width}: half of it is for each direction",
            width=self.width,
        )
        require(self.highways >= 0, "backbone.highways must be 0 or more, got {highways}", highways=self.highways)
        require(
            any(self.filters) and min(self.filters) >= 0 and len(self.filters) <= CHARACTERS,
            "backbone.filters must be the numbers of convolutions over 1, 2, 3 ... characters, some of them over 0, got {filters}",
            filters=self.filters,
        )
        require(self.clip is None or self.clip > 0, "backbone.clip must be none or over 0, got {clip}", clip=self.clip)
        check_dropout(self, "dropout")

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("column:spelling", "it reads words by their spelling"), *TWO_SIDED)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"two halves", "one-way layers", "no summary", "equal layers", "future hidden", "past hidden"})

    @property
    def one_way(self) -> int:
        """The highest layer in which each half of the vectors sees one direction: the last."""
        return self.layers

    @property
    def direction(self) -> int:
        """The width of each direction."""
        return self.width // 2

    @property
    def embedding(self) -> int | None:
        """The width of the embeddings, which both stacks read."""
        return self.width // 2

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> TwoWayLSTMModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return TwoWayLSTMModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass. The length and `asked` have no effect."""
        half, found = self.width // 2, sum(self.filters)
        layer = 2 * GATES * self.cells * 2 * half + (2 * self.cells * half if self.cells != half else 0)
        spelling = sum(2 * CHARACTERS * size * self.characters * count for size, count in enumerate(self.filters, 1))
        return float(2 * self.layers * layer + spelling + self.highways * 4 * found * found + 2 * found * half)


class TwoWayLSTMModule(nn.Module):
    """The network itself."""

    endless = False
    reach = None  # there are no distances

    def __init__(self, spec: TwoWayLSTM, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec, half = spec, spec.width // 2
        self.embed: Any = embed or SpellingEmbed(vocabulary, half, spec.characters, spec.filters, spec.highways)
        self.from_left, self.from_right = (
            nn.ModuleList(
                LSTMLayer(half, spec.cells, projection=None if spec.cells == half else half, clip=spec.clip)
                for _ in range(spec.layers)
            )
            for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout_for(spec.dropout))
        self.compiled = False

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one: the layers are fused kernels already."""
        return [self.embed]

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, from the first layer up. All other modules count as embeddings."""
        return [list(pair) for pair in zip(self.from_left, self.from_right, strict=True)]

    def cache(self, rows: int, length: int | None = None) -> None:
        """Refuse to continue a text: half of the vectors depend on the text that follows."""
        require(
            False,
            "this network reads a text from both sides, so it cannot continue a text: use a model such as awd-lstm",
        )

    def first_state(self, rows: int) -> None:
        """The memory before the first batch of training: None, because cells begin with zeros in every row."""

    def forward(self, batch: Batch, state: None = None) -> tuple[Hidden, None]:
        """The vectors: the embeddings twice, then both directions of every layer. There is no memory."""
        x = self.embed(batch)
        x = x.to(compute_dtype(self.embed.project.weight))
        x = x * batch.real[:, :, None]  # padding has no vectors
        left = self._read(self.from_left, x, ReadingOrder.left(batch), batch.real)
        right = self._read(self.from_right, x, ReadingOrder.right(batch), batch.real)
        layers = tuple(torch.cat(pair, -1) for pair in zip((x, *left), (x, *right), strict=True))
        decoded = self.dropout(layers[-1]) if self.training and self.dropout.p else None
        return Hidden(layers, decoded=decoded), None

    def _read(self, stack: nn.ModuleList, x: Tensor, order: ReadingOrder, real: Tensor) -> list[Tensor]:
        """The output of every layer of a stack. From the second layer on, the input is added to the output."""
        x, found = order.to_steps(x), list[Tensor]()
        for number, layer in enumerate(stack):
            out = layer(self.dropout(x))[0]
            x = out + x if number else out
            found.append(order.to_places(x) * real[:, :, None])
        return found
