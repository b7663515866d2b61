"""FromCounts: what can be counted about single tokens in the training text, a network knows before the first step.

Token embeddings start as word vectors, and the biases of the output as how frequent tokens are. Only initial values change.

Two tokens are alike if they have the same neighbours. This can be counted in seconds, while a network needs minutes to find it out:
a table of tokens and neighbours holds how much more often each pair occurs than by chance (PMI), and a singular value decomposition
makes short vectors of its rows. The result is close to that of skip-gram (Levy and Goldberg 2014).

The frequency of each token is the first thing that a network learns. It has to turn its embeddings for this, if the bias does not
say it already; and an LSTM without a penalty on its activations never gets beyond it (docs/results.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from unmask.axes import Need, Part
from unmask.chance import generator, seed_torch
from unmask.errors import require

SMOOTHED: Final = 0.75  # power of the frequency of a neighbour: rare ones count less (Levy, Goldberg and Dagan 2015)
SPREAD: Final = 0.5  # power of the singular values
LEAST: Final = 5  # a token that is rarer keeps its random numbers, and so does one without neighbours
MORE: Final = 16  # dimensions that the decomposition computes and leaves out: the last ones are inexact
ROUNDS: Final = 3  # of the decomposition
SEED: Final = 0

Sample = Callable[[int], Iterator[tuple[np.ndarray, np.ndarray]]]  # of this many tokens: their ids and documents


@dataclass(frozen=True)
class FromCounts(Part):
    """Token embeddings start as word vectors: which tokens stand near each other in the training text (PMI and SVD)."""

    window: int = 5  # neighbours on each side; near ones count more
    contexts: int = 2_048  # the most frequent tokens are counted as neighbours
    tokens: int = 20_000_000  # most tokens of the text that are read
    biases: bool = True  # the biases of outputs that predict tokens start too: as the log frequencies of the tokens

    def __post_init__(self) -> None:
        for name in ("window", "contexts", "tokens"):
            value = getattr(self, name)
            require(value >= 1, "start.{name} must be 1 or more, got {value}", name=name, value=value)

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("one table", "it writes one vector for each token"),)

    def check(self, width: int) -> None:
        """Every width can be filled."""

    def fill(self, table: Tensor, biases: Sequence[Tensor], words: Sequence[str | None], sample: Sample) -> str:
        """Write the vectors into a table of embeddings. Columns that are 0 for all tokens stay so: they are kept for positions."""
        counts, often = self.counted(len(table), sample)
        written = biases if self.biases else ()
        with torch.no_grad():
            for bias in written:
                bias.copy_(log_frequencies(often))
        more = ", and output biases as their log frequencies" if written else ""
        known = torch.from_numpy(often >= LEAST) & counts.any(1)
        free = (table != 0).any(0)
        if known.sum() < 2:  # a single token cannot be compared with another one
            return (
                f"fewer than two tokens occur {LEAST} times in the text and have neighbours: all embeddings start with random numbers"
                f"{more} (start=FromCounts)"
            )
        vectors = word_vectors(counts[known], int(free.sum()))
        with torch.no_grad():
            size = table[:, free].square().mean().sqrt()  # the vectors get the size of the random numbers
            places = known.nonzero().to(table.device), free.nonzero().T.to(table.device)
            table[places] = (vectors.to(table) * size).to(table)
        return (
            f"the embeddings of {int(known.sum()):,} of {len(table):,} tokens start as word vectors, counted in {int(often.sum()):,} "
            f"tokens of the text{more} (start=FromCounts)"
        )

    def counted(self, vocabulary: int, sample: Sample) -> tuple[Tensor, np.ndarray]:
        """V contexts, how often each token has each neighbour, weighted by its distance; V, how often each token occurs."""
        often = np.zeros(vocabulary, np.int64)
        for ids, _ in sample(self.tokens):
            often += np.bincount(ids, minlength=vocabulary)
        chosen = np.argsort(-often, kind="stable")[: self.contexts]
        column = np.full(vocabulary, -1, np.int64)
        column[chosen] = np.arange(len(chosen))
        most = int(often.sum()) * self.window * (self.window + 1)  # no sum is larger
        # whole numbers: exact in any order
        counts = torch.zeros(vocabulary, len(chosen), dtype=torch.int32 if most < 2**31 else torch.int64)
        for ids, document in sample(self.tokens):
            for distance in range(1, min(self.window, len(ids) - 1) + 1):
                together = document[distance:] == document[:-distance]
                first, second = ids[:-distance][together], ids[distance:][together]
                for token, neighbour in ((first, column[second]), (second, column[first])):
                    cells = torch.from_numpy((token * len(chosen) + neighbour)[neighbour >= 0])
                    weight = torch.full((1,), self.window + 1 - distance, dtype=counts.dtype)
                    counts.view(-1).scatter_add_(0, cells, weight.expand(len(cells)))
        return counts, often


def log_frequencies(often: np.ndarray) -> Tensor:
    """V, the logarithm of the share of each token, moved to a mean of 0. A token that does not occur counts as half a one."""
    found = torch.from_numpy(np.log(often + 0.5)).float()
    return found - found.mean()


def word_vectors(counts: Tensor, width: int) -> Tensor:
    """N width, a vector for each row of a table of counts. Its numbers have a mean square of 1."""
    vectors = reduced(positive_pmi(counts), width)
    vectors = vectors - vectors.mean(0)
    turned = vectors @ _directions(vectors.shape[1], width)
    return turned / turned.norm(dim=1, keepdim=True).clamp(min=1e-6) * math.sqrt(width)


def positive_pmi(counts: Tensor) -> Tensor:
    """N contexts, log(p(context | token) / p(context)) with smoothed frequencies of the contexts, 0 where it is negative."""
    found = counts.float()
    often = found.sum(0).pow(SMOOTHED)
    chance = (often / often.sum().clamp(min=1)).clamp(min=1e-30)
    return found.div_(found.sum(1, keepdim=True).clamp(min=1)).div_(chance).log_().clamp_(min=0)


def reduced(table: Tensor, width: int) -> Tensor:
    """N d, the rows in the d directions that explain most of the table; d is `width`, or less if the table has fewer."""
    most = min(table.shape)
    with torch.random.fork_rng(devices=[]):
        seed_torch(SEED)
        left, sizes, _ = torch.svd_lowrank(table, q=min(width + MORE, most), niter=ROUNDS)
    kept = min(width, most)
    return left[:, :kept] * sizes[:kept].pow(SPREAD)


def _directions(count: int, width: int) -> Tensor:
    """count width, orthogonal rows of length 1 in random directions: so all numbers of an embedding have equal shares."""
    dice = generator(SEED, 0).standard_normal((width, width))
    return torch.from_numpy(np.linalg.qr(dice)[0][:count].astype(np.float32))
