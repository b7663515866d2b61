"""What is held out of a corpus: documents, or of texts read as a whole their stretches; chunk by chunk, in its order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

STRETCH = 512  # tokens: a usual row; a shorter stretch says little about a text

Tokenised = list[tuple[np.ndarray, ...]]  # per document: ids, word flags, tokens per sentence, a column per level


def by_document(chunks: Iterable[Tokenised], share: float) -> Iterator[tuple[Tokenised, Tokenised]]:
    """Of each chunk the documents to train on and those held out: a share of their number."""
    done = 0
    for chunk in chunks:
        held = _held(done + np.arange(len(chunk)), share)
        done += len(chunk)
        yield [chunk[i] for i in np.flatnonzero(~held)], [chunk[i] for i in np.flatnonzero(held)]


def by_stretch(chunks: Iterable[Tokenised], share: float) -> Iterator[tuple[Tokenised, Tokenised]]:
    """Of each chunk what to train on and its end, held out: a share of the tokens, in stretches worth reading."""
    owed = 0.0  # tokens not yet held out
    for chunk in chunks:
        total = sum(len(ids) for ids, *_ in chunk)
        owed += share * total
        stretch = min(int(owed), total) if owed >= STRETCH else 0
        train, held = _cut(chunk, total - stretch)
        owed -= sum(len(ids) for ids, *_ in held)
        yield train, held


def _held(numbers: np.ndarray, share: float) -> np.ndarray:
    """Which documents are held out: a share of them, evenly spread, from the second document on."""
    if not share:
        return np.zeros(len(numbers), bool)
    shifted = numbers + (math.ceil(1 / share) - 2)
    return np.floor((shifted + 1) * share) > np.floor(shifted * share)


def _cut(chunk: Tokenised, at: int) -> tuple[Tokenised, Tokenised]:
    """What stands before a token of the chunk, and the rest; a document that it falls into is cut in two."""
    before: Tokenised = []
    after: Tokenised = []
    for document in chunk:
        size = len(document[0])
        if at >= size:
            before.append(document)
        elif at <= 0:
            after.append(document)
        else:
            middle = _word_from(document[1], at)
            before.append(_piece(document, 0, middle))
            after.append(_piece(document, middle, size))
        at -= size
    return before, after


def _word_from(word: np.ndarray, at: int) -> int:
    """Where the next word begins; the token itself where words are as long as stretches."""
    return at + int(word[at : at + STRETCH // 2].argmax())


def _piece(document: tuple[np.ndarray, ...], begin: int, end: int) -> tuple[np.ndarray, ...]:
    ids, word, sentences, *levels = document
    starts = np.cumsum(sentences) - sentences
    edges = np.concatenate(([begin], starts[(starts > begin) & (starts < end)], [end]))
    return ids[begin:end], word[begin:end], np.diff(edges), *(column[begin:end] for column in levels)
