"""LSTM: a recurrent network that reads rows in one direction, with the dropouts of AWD-LSTM; its cells are its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from unmask.axes import ALL_TOKENS, Need
from unmask.backbone.auto_dropout import Dropout, dropout_for
from unmask.backbone.lstm_layer import GATES, Cells, LSTMLayer, ReadingOrder
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.backbone.without_positions import ALONE, WithoutPositions
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.see import Pattern

EMBEDDINGS = 0.1  # initial embeddings are drawn between this and its negative
DROPOUTS = ("dropout", "embedding_dropout", "input_dropout", "hidden_dropout", "weight_dropout")


@dataclass(frozen=True)
class LSTM(WithoutPositions):
    """A stack of LSTM layers that read in one direction (AWD-LSTM). Every dropout may be `auto`: by how often the text is read."""

    layers: int = 3  # the number of layers
    width: int = 400  # of the embeddings and of the last layer
    inner: int | None = None  # width of all layers below the last; none: `width`
    length: int = 512  # the longest text that is read at once; the network has no positions and could read any length
    direction: Literal["left", "right"] = "left"  # where it begins to read: at the left, or at the right
    carry: bool = True  # a row that continues the row before begins with its cells
    dropout: Dropout = 0.4  # on the vectors that predict tokens; one mask for all tokens of a row
    embedding_dropout: Dropout = 0.1  # on whole words: all places of a word in a batch become zeros
    input_dropout: Dropout = 0.4  # on the input of the first layer; one mask for all tokens of a row
    hidden_dropout: Dropout = 0.3  # between layers; one mask for all tokens of a row
    weight_dropout: Dropout = 0.5  # on the recurrent weights; one mask for all steps and rows of a batch

    def __post_init__(self) -> None:
        self.check_sizes("layers", "width", "length")
        require(
            self.inner is None or self.inner >= 1,
            "backbone.inner must be none or 1 or more, got {inner}",
            inner=self.inner,
        )
        require(
            self.direction == "left" or not self.carry,
            "backbone.carry=true continues the row before, but direction=right begins at the end of a row, before which "
            "nothing was read: set carry=false",
        )
        check_dropout(self, *DROPOUTS, automatic=DROPOUTS)

    @property
    def needs(self) -> tuple[Need, ...]:
        side = Need(self.direction, f"it reads from the {self.direction}")
        rows = Need("continuing rows|examples", "its cells continue from row to row", unless="carry=false")
        return (side, ALONE, *((rows,) if self.carry else ()))

    @property
    def gives(self) -> frozenset[str]:
        found = {"one table"} | ({"memory", "cells"} if self.carry else set())
        return frozenset(found | ({"equal layers"} if self.inner in (None, self.width) else set()))

    @property
    def memory(self) -> int:
        """The number of tokens of earlier rows that it remembers."""
        return ALL_TOKENS if self.carry else 0

    @property
    def embedding(self) -> int | None:
        """The width of the embeddings: None, the width of the last layer."""
        return None

    @property
    def widths(self) -> list[int]:
        """The width of the embeddings and of every layer."""
        return [self.width, *[self.inner or self.width] * (self.layers - 1), self.width]

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> LSTMModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return LSTMModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass. The length and `asked` have no effect."""
        pairs = zip(self.widths, self.widths[1:], strict=False)
        return float(sum(2 * GATES * cells * (inputs + cells) for inputs, cells in pairs))


class LockedDropout(nn.Module):
    """Dropout with one mask for all tokens of a row (variational dropout)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.share:
            return x
        return x * x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.share).div_(1 - self.share)


class WordEmbed(nn.Module):
    """Token embeddings without positions, with dropout of whole words."""

    token_rows: ClassVar[tuple[str, ...]] = ("token.weight",)  # parameters with one row per token of the vocabulary

    def __init__(self, vocabulary: int, width: int, dropout: float) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        nn.init.uniform_(self.token.weight, -EMBEDDINGS, EMBEDDINGS)
        self.segment = None
        self.dropout = dropout

    def forward(self, ids: Tensor) -> Tensor:
        x: Tensor = self.token(ids)
        if not self.training or not self.dropout:
            return x
        kept = x.new_empty(len(self.token.weight)).bernoulli_(1 - self.dropout).div_(1 - self.dropout)
        return x * kept[ids][:, :, None]


class LSTMModule(nn.Module):
    """The network itself. Its memory has no gradient."""

    endless = True  # cells never become full
    reach = None  # there are no distances
    can_cache = True  # it can read two texts part by part

    def __init__(self, spec: LSTM, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec = spec
        drops = {name: dropout_for(getattr(spec, name)) for name in DROPOUTS}
        self.embed: Any = embed or WordEmbed(vocabulary, spec.width, drops["embedding_dropout"])
        self.cells = nn.ModuleList(
            LSTMLayer(inputs, cells, weight_dropout=drops["weight_dropout"])
            for inputs, cells in zip(spec.widths, spec.widths[1:], strict=False)
        )
        self.input_dropout = LockedDropout(drops["input_dropout"])
        self.hidden_dropout = LockedDropout(drops["hidden_dropout"])
        self.dropout = LockedDropout(drops["dropout"])
        self.compiled = False

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one: none, because the layers are fused kernels already."""
        return []

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, from the first layer up. All other modules count as embeddings."""
        return [[layer] for layer in self.cells]

    def cache(self, rows: int, length: int | None = None) -> list[Cells]:
        """The cells before the first token. `length` has no effect: cells have one size for texts of any length."""
        require(
            self.spec.direction == "left",
            "a text is continued from left to right, but backbone.direction is right: use a model with direction=left",
        )
        dtype = compute_dtype(self.embed.token.weight)
        return [layer.begin(rows, dtype) for layer in list[Any](self.cells)]

    def first_state(self, rows: int) -> list[Cells] | None:
        """The memory before the first batch of training."""
        return self.cache(rows) if self.spec.carry else None

    def forward(self, batch: Batch, state: list[Cells] | None = None) -> tuple[Hidden, list[Cells] | None]:
        """The vectors, and the cells after the batch. With a state, the batch continues it. Without, None is returned.

        In training, rows are full or padded at the right, so they are read as they are."""
        order = self._order(batch)
        lengths = None if state is None or self.training or batch.shape[1] == 1 else batch.real.sum(1)
        x = self.embed(batch.ids if order is None else batch.ids.gather(1, order.step))
        x = x.to(compute_dtype(self.embed.token.weight))
        before = [None] * len(self.cells) if state is None else _begun(state, batch.per_row.get("begins"))
        layers, after, fed = [x], [], self.input_dropout(x)
        for layer, cells in zip(self.cells, before, strict=True):
            x, kept = self._read(layer, fed, cells, lengths, batch.reuse)
            layers.append(x)
            after.append(kept)
            fed = self.hidden_dropout(x)
        if order is not None:
            layers = [order.to_places(layer) * batch.real[:, :, None] for layer in layers]  # padding has no vectors
        decoded = self.dropout(layers[-1]) if self.training and self.dropout.share else None
        return Hidden(tuple(layers), decoded=decoded), None if state is None else after

    def _order(self, batch: Batch) -> ReadingOrder | None:
        """The order in which rows are read; None: as they are."""
        if self.spec.direction == "right":
            return ReadingOrder.right(batch)
        return None if self.training else ReadingOrder.left(batch)

    def _read(
        self, layer: nn.Module, x: Tensor, cells: Cells | None, lengths: Tensor | None, reuse: int | None
    ) -> tuple[Tensor, Cells]:
        """The outputs of a layer, and its state for the next batch, without a gradient. `reuse`: the next batch continues
        after this number of tokens; None: after all."""
        if reuse is None:
            out, state = layer(x, cells, lengths)
        else:
            first, state = layer(x[:, :reuse], cells, None if lengths is None else lengths.clamp(max=reuse))
            rest, _ = layer(x[:, reuse:], state)
            out = torch.cat((first, rest), 1)
        return out, Cells(state.output.detach(), state.cell.detach())


def _begun(state: list[Cells], begins: Tensor | None) -> list[Cells]:
    """The state with zeros for the rows that do not continue the rows before."""
    if begins is None:
        return state
    kept = ~begins[:, None]
    return [Cells(cells.output * kept, cells.cell * kept) for cells in state]
