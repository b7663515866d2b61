"""A sample of the training text: pieces from everywhere, for what is counted before training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unmask.data.shards import Shard, Shards

PIECE = 1 << 16  # tokens that are read at a time


def sample(data: Sequence[Shards], weights: Sequence[float], tokens: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """About this many training tokens, or all if there are fewer; each data set gives its share.

    Yields the ids of each piece, and the number of the document that each token belongs to."""
    for folder, weight in zip(data, weights, strict=True):
        share = min(1.0, tokens * weight / sum(weights) / max(1, folder.tokens))
        for shard in folder.split("train"):
            yield from _pieces(shard, share)


def _pieces(shard: Shard, share: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pieces that are spread evenly over a shard, and together have this share of its tokens."""
    starts = shard.sentence[shard.document[:-1]]
    every = -(-len(shard.ids) // PIECE)
    for number in np.linspace(0, every - 1, round(share * every) or 1).astype(np.int64):
        begin, end = number * PIECE, min((number + 1) * PIECE, len(shard.ids))
        yield shard.ids[begin:end].astype(np.int64), np.searchsorted(starts, np.arange(begin, end), side="right")
