"""SpelledBiLSTM: words and their spelling under LSTM layers that read in both directions; heads read all layers (CVT).

The network of Clark et al. (2018): the vector of a word and convolutions over its characters, a BiLSTM over them, and a second BiLSTM over
the first. In the first layer each half of the vectors sees one direction, so students of cross-view training can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unmask.axes import Need
from unmask.backbone.lstm import EMBEDDINGS
from unmask.backbone.lstm_layer import GATES, LSTMLayer, ReadingOrder
from unmask.backbone.spelling_embed import character_layers, convolved
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.backbone.two_way_lstm import CHARACTERS
from unmask.backbone.without_positions import TWO_SIDED, WithoutPositions
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.see import Pattern


@dataclass(frozen=True)
class SpelledBiLSTM(WithoutPositions):
    """BiLSTM layers over word vectors and characters. The last vectors are those of all layers, side by side."""

    cells: tuple[int, ...] = (1024, 512)  # of each layer, in each direction
    projection: int | None = 512  # most outputs of each direction; none: as many as cells
    embedding: int = 300  # width of the word vectors
    characters: int = 50  # width of the vector of a character
    filters: tuple[int, ...] = (
        0,
        100,
        100,
        100,
    )  # convolutions over 1, 2, 3 ... characters; (): no characters are read
    length: int = 512  # the longest text that is read at once; the network has no positions and could read any length
    dropout: float = 0.5  # on the embeddings and on the output of every layer

    def __post_init__(self) -> None:
        self.check_sizes("embedding", "characters", "length")
        require(
            bool(self.cells) and min(self.cells) >= 1,
            "backbone.cells must be the numbers of cells of all layers, each 1 or more, got {cells}: write (1024, 512)",
            cells=self.cells,
        )
        require(
            self.projection is None or self.projection >= 1,
            "backbone.projection must be none or 1 or more, got {projection}",
            projection=self.projection,
        )
        require(
            not self.filters or (any(self.filters) and min(self.filters) >= 0 and len(self.filters) <= CHARACTERS),
            "backbone.filters must be the numbers of convolutions over 1, 2, 3 ... characters, some of them over 0, got {filters}",
            filters=self.filters,
        )
        check_dropout(self, "dropout", automatic=())

    @property
    def needs(self) -> tuple[Need, ...]:
        spelling = Need("column:spelling", "it reads words by their spelling too", unless="filters=()")
        return (*TWO_SIDED, *((spelling,) if self.filters else ()))

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "one-way layers", "no summary"})

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.cells)

    @property
    def outputs_of(self) -> tuple[int, ...]:
        """The width of each direction of every layer."""
        return tuple(cells if self.projection is None else min(cells, self.projection) for cells in self.cells)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The width of what every layer reads."""
        return self.embedding + sum(self.filters), *(2 * width for width in self.outputs_of[:-1])

    @property
    def one_way(self) -> int:
        """The highest layer in which each half of the vectors sees one direction: the first, because all others read both."""
        return 1

    @property
    def direction(self) -> int:
        """The width of each direction in that layer."""
        return self.outputs_of[0]

    @property
    def width(self) -> int:
        """The width of the last vectors: both directions of all layers."""
        return 2 * sum(self.outputs_of)

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> SpelledBiLSTMModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return SpelledBiLSTMModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass. The length and `asked` have no effect."""
        sizes = zip(self.inputs, self.cells, self.outputs_of, strict=True)
        layers = sum(
            2 * GATES * cells * (read + out) + 2 * cells * out * _projects(cells, self) for read, cells, out in sizes
        )
        spelling = sum(2 * CHARACTERS * size * self.characters * count for size, count in enumerate(self.filters, 1))
        return float(2 * layers + spelling)


def _projects(cells: int, spec: SpelledBiLSTM) -> bool:
    """Whether the outputs of a layer of so many cells are projected."""
    return spec.projection is not None and spec.projection < cells


class WordAndSpelling(nn.Module):
    """The vector of each word, and what convolutions find in its characters."""

    token_rows: ClassVar[tuple[str, ...]] = ("token.weight",)  # tensors with one row per token of the vocabulary

    def __init__(self, spec: SpelledBiLSTM, vocabulary: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, spec.embedding)
        nn.init.uniform_(self.token.weight, -EMBEDDINGS, EMBEDDINGS)
        self.segment = None
        self.character: nn.Embedding | None = None
        self.convolutions: nn.ModuleList | None = None
        if spec.filters:
            self.character, self.convolutions = character_layers(spec.characters, spec.filters)

    def forward(self, batch: Batch) -> Tensor:
        words: Tensor = self.token(batch.ids)
        if self.character is None or self.convolutions is None:
            return words
        return torch.cat((words, convolved(batch, self.character, self.convolutions).view(*batch.shape, -1)), 2)


class SpelledBiLSTMModule(nn.Module):
    """The network itself."""

    endless = False
    reach = None  # there are no distances
    can_cache = False

    def __init__(self, spec: SpelledBiLSTM, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec = spec
        self.embed: Any = embed or WordAndSpelling(spec, vocabulary)
        sizes = list(zip(spec.inputs, spec.cells, spec.outputs_of, strict=True))
        self.left, self.right = (
            nn.ModuleList(
                LSTMLayer(read, cells, projection=out if _projects(cells, spec) else None) for read, cells, out in sizes
            )
            for _ in range(2)
        )
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
        orders = ReadingOrder.left(batch), ReadingOrder.right(batch)
        layers = [self.dropout(self.embed(batch).to(compute_dtype(self.embed.token.weight)))]
        for sides in zip(self.left, self.right, strict=True):
            read = [
                order.to_places(side(order.to_steps(layers[-1]))[0]) for side, order in zip(sides, orders, strict=True)
            ]
            both = self.dropout(torch.cat(read, 2))
            layers.append(both * batch.real[:, :, None])  # padding, which is read last, has seen the text
        return Hidden((*layers, torch.cat(layers[1:], 2))), state
