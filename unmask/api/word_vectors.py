"""Word vectors from Python: make_vectors, and load_vectors with what a file of vectors knows."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from unmask import screen, text, vectors
from unmask.api.paths import Paths, listed
from unmask.progress import Progress, draw_notes, follow
from unmask.text.boundaries import words_named
from unmask.vectors.word_file import Cutting, WordCounts, count_words


def make_vectors(
    corpus: Paths, out: str | Path, *, kind: str = "skipgram", dims: int = 100, window: int | None = None,
    epochs: int | None = None, least_count: int = 5, components: str | Path | None = None, words: str = "auto",
    words_from: Paths = (), lowercase: bool = True, lines: bool = False, encoding: str = "utf-8", errors: str = "strict",
    seed: int = 0, workers: int | None = None, overwrite: bool = False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Train word vectors on a corpus and write them to `out`: as binary if its name ends in .bin, otherwise as text.

    `kind`: skipgram, cbow, fasttext or glove. `window`: words on each side. `least_count`: rarer words get no vector.
    `components`: for glove, a table of the components of Chinese characters.
    `words`, `words_from`, `lines`, `encoding`, `errors`: as for `prepare`. `workers`: 1 makes the result depend only on the seed."""
    training = vectors.VectorTraining(
        kind, dims, window, epochs, least_count, None if components is None else Path(components)
    )
    stream = text.Corpus(listed(corpus), errors=errors, encoding=encoding, seed=seed, lines=lines)
    records = vectors.make_vectors(
        stream, out, training, _cutting(words, words_from, lowercase), seed=seed, workers=workers, overwrite=overwrite
    )
    summary = follow(records, progress, partial(screen.reading, title=f"{kind} vectors", unit="words", over="done"))
    draw_notes(summary["notes"], progress)
    return summary


def load_vectors(file: str | Path) -> Vectors:
    """The word vectors of a file: the text or the binary format (.bin) of word2vec, or the text format of GloVe."""
    return Vectors(vectors.read_vectors(file))


class Vectors:
    """Word vectors, and what they know."""

    def __init__(self, found: vectors.WordVectors) -> None:
        self.vectors = found

    def near(self, word: str, *, k: int = 10) -> list[vectors.Near]:
        """The words whose vectors have the highest cosine with the vector of a word."""
        return vectors.nearest(self.vectors, word, k)

    def analogy(self, a: str, b: str, c: str, *, k: int = 10) -> list[vectors.Near]:
        """The words that are to `c` as `b` is to `a`: analogy("man", "king", "woman")."""
        return vectors.analogy(self.vectors, a, b, c, k)

    def coverage(
        self, corpus: Paths, *, words: str = "auto", words_from: Paths = (), lowercase: bool = True, lines: bool = False,
        encoding: str = "utf-8", errors: str = "strict", seed: int = 0, workers: int | None = None, progress: Progress = True,
    ) -> vectors.Coverage:  # fmt: skip
        """How many of the words of a corpus have a vector. The options are those of `make_vectors`."""
        stream = text.Corpus(listed(corpus), errors=errors, encoding=encoding, seed=seed, lines=lines)
        counts = WordCounts()
        records = count_words(stream, _cutting(words, words_from, lowercase), counts, workers=workers)
        follow(records, progress, partial(screen.reading, title="counting", unit="words", over="done"))
        return vectors.coverage(self.vectors, counts.frequent(1))

    def save(self, out: str | Path, *, overwrite: bool = False) -> None:
        """Write a file: binary if its name ends in .bin, otherwise text."""
        vectors.write_vectors(self.vectors, out, overwrite=overwrite)


def _cutting(words: str, words_from: Paths, lowercase: bool) -> Cutting:
    way = words_named(words)
    return Cutting(way, text.OwnWords.load(listed(words_from), way) if words_from else None, lowercase)
