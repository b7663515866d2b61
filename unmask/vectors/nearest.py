"""What word vectors know: the words nearest to a word, analogies, and how much of a corpus they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from unmask.errors import UserError, require
from unmask.vectors.vector_file import WordVectors

_FREQUENT = 50_000  # words that an unknown word is compared with; more take seconds


@dataclass(frozen=True)
class Near:
    """A word and its cosine."""

    word: str
    score: float


@dataclass(frozen=True)
class Coverage:
    """How much of a corpus the words of a file cover."""

    words: int  # in the corpus
    known: int  # of these, with a vector
    different: int  # different words in the corpus
    different_known: int
    missing: tuple[str, ...]  # the most frequent words without a vector

    @property
    def share(self) -> float:
        return self.known / self.words


def nearest(vectors: WordVectors, word: str, count: int = 10) -> list[Near]:
    """The words whose vectors have the highest cosine with the vector of a word."""
    place = _place(vectors, word)
    return _nearest(vectors, _unit(vectors)[place], [place], count)


def analogy(vectors: WordVectors, a: str, b: str, c: str, count: int = 10) -> list[Near]:
    """The words that are to `c` as `b` is to `a`: nearest to b - a + c, with vectors of length 1 (Mikolov et al. 2013)."""
    unit = _unit(vectors)
    first, second, third = asked = [_place(vectors, word) for word in (a, b, c)]
    return _nearest(vectors, unit[second] - unit[first] + unit[third], asked, count)


def coverage(vectors: WordVectors, counts: Sequence[tuple[str, int]]) -> Coverage:
    """How much of a corpus has a vector. `counts`: its words with their counts, the most frequent first."""
    known = [(word, count) for word, count in counts if word in vectors.places]
    missing = [word for word, _ in counts if word not in vectors.places]
    return Coverage(
        sum(count for _, count in counts), sum(count for _, count in known), len(counts), len(known), tuple(missing[:10])
    )  # fmt: skip


def _nearest(vectors: WordVectors, query: np.ndarray, asked: list[int], count: int) -> list[Near]:
    require(count >= 1, "-k must be 1 or more, got {count}", count=count)
    scores = _unit(vectors) @ (query / max(float(np.linalg.norm(query)), 1e-12))
    scores[asked] = -np.inf  # the words of the question are no answers
    best = np.argsort(-scores, kind="stable")[: min(count, len(vectors.words) - len(set(asked)))]
    return [Near(vectors.words[place], float(scores[place])) for place in best.tolist()]


def _place(vectors: WordVectors, word: str) -> int:
    for spelling in (word, word.lower()):
        if spelling in vectors.places:
            return vectors.places[spelling]
    near = get_close_matches(word, vectors.words[:_FREQUENT], n=3, cutoff=0.5)
    raise UserError(
        "{word!r} has no vector, and {count:,} other words have one: {advice}",
        word=word,
        count=len(vectors.words),
        advice=f"did you mean {' or '.join(near)}?" if near else "give another word, or make vectors of more text",
    )


def _unit(vectors: WordVectors) -> np.ndarray:
    lengths = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    unit: np.ndarray = vectors.matrix / np.maximum(lengths, 1e-12)
    return unit
