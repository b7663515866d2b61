"""GloVe (Pennington et al. 2014): word vectors whose products are the logarithms of how often words come near each other.

The loss is the sum over the cells X of f(X) (w·c + b_w + b_c - log X)², with f(X) = min(1, (X/100)^0.75). It is trained with
AdaGrad, one tile of the table at a time.
The vector of a word is the sum of its two vectors, w and c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unmask.vectors.cooccurrence import Table

MOST, POWER = 100.0, 0.75  # f(X)
RATE = 0.05
DENSE = 0.05  # share of the cells of a tile that are counted, from which computing all products is faster
ACCUMULATED = 1.0  # what the sums of squared gradients begin with, as in the authors' program


Step = tuple[Tensor, Tensor, Tensor]  # the loss, and gradients for the rows of words and of contexts


def weight_of(count: Tensor) -> Tensor:
    """f(X): the weight of a cell; 0 where the words never meet."""
    return (count / MOST).clamp(max=1) ** POWER


class Side:
    """The vectors and biases of all words in one of their two roles, with AdaGrad's sums of squared gradients.

    A bias is the last column, so that one update serves both. `parts`: for each word its components, filled up with -1; a
    word's vector is its own plus the sum of its components' vectors. `components`: how many there are."""

    def __init__(
        self, words: int, dims: int, rng: torch.Generator, parts: Tensor | None = None, components: int = 0
    ) -> None:
        self.own = _drawn(words, dims, rng)
        self.sums = torch.full_like(self.own, ACCUMULATED)
        self.parts = parts
        self.component = _drawn(components, dims, rng)
        self.component_sums = torch.full_like(self.component, ACCUMULATED)

    def rows(self, chosen: slice) -> Tensor:
        """words (dims + 1): the vectors and biases of some words."""
        if self.parts is None:
            return self.own[chosen]
        parts = self.parts[chosen]
        return self.own[chosen] + (self.component[parts.clamp(min=0)] * (parts >= 0)[..., None]).sum(1)

    def update(self, chosen: slice, gradient: Tensor, rate: float) -> None:
        """One step of AdaGrad for some words, and for their components."""
        _adagrad(self.own[chosen], self.sums[chosen], gradient, rate)
        if self.parts is not None:
            word, place = (self.parts[chosen] >= 0).nonzero(as_tuple=True)
            total = torch.zeros_like(self.component).index_add_(0, self.parts[chosen][word, place], gradient[word])
            _adagrad(self.component, self.component_sums, total, rate)


def _drawn(rows: int, dims: int, rng: torch.Generator) -> Tensor:
    return (torch.rand(rows, dims + 1, generator=rng) - 0.5) / dims


def _adagrad(values: Tensor, sums: Tensor, gradient: Tensor, rate: float) -> None:
    sums.addcmul_(gradient, gradient)
    values.addcdiv_(gradient, sums.sqrt(), value=-rate)


def dense_step(words: Tensor, contexts: Tensor, row: Tensor, column: Tensor, count: Tensor) -> Step:
    """The loss of some cells, and half of its gradient for the rows of both sides (the other half is in the learning rate).
    All products of the rows are computed: fast if there are many cells."""
    counts = torch.zeros(len(words), len(contexts), dtype=count.dtype)
    counts[row, column] = count
    product = words[:, :-1] @ contexts[:, :-1].T + words[:, -1:] + contexts[:, -1:].T
    error = product - counts.clamp(min=torch.finfo(counts.dtype).tiny).log()
    slope = weight_of(counts) * error
    rows = torch.cat((slope @ contexts[:, :-1], slope.sum(1, keepdim=True)), 1)
    columns = torch.cat((slope.T @ words[:, :-1], slope.sum(0)[:, None]), 1)
    return (slope * error).sum(), rows, columns


def sparse_step(words: Tensor, contexts: Tensor, row: Tensor, column: Tensor, count: Tensor) -> Step:
    """The same, from the products of the given cells only: fast if there are few."""
    word, context = words[row], contexts[column]
    error = (word[:, :-1] * context[:, :-1]).sum(1) + word[:, -1] + context[:, -1] - count.log()
    slope = (weight_of(count) * error)[:, None]
    ones = torch.ones_like(slope)
    rows = torch.zeros_like(words).index_add_(0, row, slope * torch.cat((context[:, :-1], ones), 1))
    columns = torch.zeros_like(contexts).index_add_(0, column, slope * torch.cat((word[:, :-1], ones), 1))
    return (slope[:, 0] * error).sum(), rows, columns


@dataclass(frozen=True)
class Trained:
    """What is known after a pass over the table."""

    epoch: int
    loss: float  # mean over the cells


class GloVe:
    """Both sides of the model, and the training over a table."""

    def __init__(
        self, table: Table, dims: int, *, seed: int = 0, parts: np.ndarray | None = None, components: int = 0
    ) -> None:
        """`parts`: the components of each word, by the word's number (see components.py); `components`: how many there are."""
        rng = torch.Generator().manual_seed(seed)
        self.table, self.layout, self.seed = table, table.layout, seed
        places = self.layout.blocks * self.layout.tile
        dealt = None
        if parts is not None:
            dealt = torch.full((places, parts.shape[1]), -1)
            dealt[torch.from_numpy(self.layout.places)] = torch.from_numpy(parts).long()
        self.word, self.context = (Side(places, dims, rng, dealt, components) for _ in range(2))

    def train(self, epochs: int, rate: float = RATE) -> Iterator[Trained]:
        """Pass over all tiles, in a new order each time; yields after each pass."""
        blocks = self.layout.blocks
        pairs = [(row, column) for row in range(blocks) for column in range(row, blocks)]
        for epoch in range(epochs):
            order = np.random.default_rng((self.seed % 2**64, epoch)).permutation(len(pairs))
            losses = [self._tile(pairs[number], rate) for number in order.tolist()]
            cells = 2 * len(self.table.value)
            yield Trained(epoch + 1, float(torch.stack(losses).sum(dtype=torch.float64)) / cells)

    def _tile(self, pair: tuple[int, int], rate: float) -> Tensor:
        """Train on the tile of a pair of blocks, and on its mirror image."""
        size = self.layout.tile
        one, other = (slice(block * size, (block + 1) * size) for block in pair)
        row, column, count = self.cells(pair)
        loss = self._step(one, other, row, column, count, rate)
        return loss if one == other else loss + self._step(other, one, column, row, count, rate)

    def _step(self, word: slice, context: slice, row: Tensor, column: Tensor, count: Tensor, rate: float) -> Tensor:
        step = dense_step if len(count) > DENSE * self.layout.tile**2 else sparse_step
        loss, rows, columns = step(self.word.rows(word), self.context.rows(context), row, column, count)
        self.word.update(word, rows, rate)
        self.context.update(context, columns, rate)
        return loss

    def cells(self, pair: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
        """The cells of a tile: their rows, columns and counts. Of a tile on the diagonal both halves."""
        index, value = self.table.cells(*pair)
        row, column = (torch.from_numpy(part) for part in np.divmod(index.astype(np.int64), self.layout.tile))
        count = torch.from_numpy(np.array(value))
        if pair[0] != pair[1]:
            return row, column, count
        upper = row != column
        both = torch.where(upper, count, 2 * count)  # a word that meets itself is counted from both sides
        return torch.cat((row, column[upper])), torch.cat((column, row[upper])), torch.cat((both, count[upper]))

    def vectors(self) -> np.ndarray:
        """words dims: the sum of both vectors of each word."""
        everything = slice(0, len(self.word.own))
        both = (self.word.rows(everything) + self.context.rows(everything))[:, :-1]
        return both[torch.from_numpy(self.layout.places)].numpy()

    def component_vectors(self) -> np.ndarray:
        """components dims: the sum of both vectors of each component."""
        return (self.word.component + self.context.component)[:, :-1].numpy()
