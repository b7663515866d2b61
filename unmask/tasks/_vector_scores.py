"""Score vectors of texts: how well cosines follow numbers, and how often a text finds the one that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SOME = 512  # anchors whose scores are computed at once


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors with length 1 along their last axis; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    found: np.ndarray = vectors / np.maximum(lengths, 1e-12)
    return found


def retrieval(texts: Sequence[tuple[str, ...]], vectors: Sequence[np.ndarray]) -> dict[str, float]:
    """Recall at 1 and mean reciprocal rank: where the second text of each example comes among all texts but the first ones.

    Other second texts of the same first text are right too, and do not count as better ones; neither does the first text
    itself. `vectors`: per example K D."""
    candidates = {
        text: row
        for some, rows in zip(texts, vectors, strict=True)
        for text, row in zip(some[1:], rows[1:], strict=False)
    }
    number = {text: i for i, text in enumerate(candidates)}
    matrix = unit(np.stack(list(candidates.values())))
    right: dict[str, set[int]] = {}
    for some in texts:
        right.setdefault(some[0], {number[some[0]]} if some[0] in number else set()).add(number[some[1]])
    ranks = np.empty(len(texts))
    for begin in range(0, len(texts), SOME):
        few = texts[begin : begin + SOME]
        scores = unit(np.stack([rows[0] for rows in vectors[begin : begin + SOME]])) @ matrix.T
        for i, some in enumerate(few):
            own = scores[i, number[some[1]]]
            others = np.delete(scores[i], list(right[some[0]]))
            ranks[begin + i] = 1 + (others >= own).sum()
    return {"recall_at_1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}
