"""What is held out of a corpus: documents, or stretches of texts read as a whole; chunk by chunk, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

STRETCH = 512  # tokens: a usual row; a shorter stretch says little about a text
SHORT = 4 * STRETCH  # tokens: a document of this size is held out whole or not at all

Tokenised = list[tuple[np.ndarray, ...]]  # per document: ids, word flags, tokens per sentence, a column per level


def by_document(chunks: Iterable[Tokenised], share: float) -> Iterator[tuple[Tokenised, Tokenised]]:
    """Of each chunk the documents to train on and those held out: a share of the tokens, as whole documents if possible.

    The next document is held out as soon as tokens are owed, whatever its own size: short ones are not preferred. Of a
    document that is long against all that was read so far only the end is held out.
    """
    seen = held = 0  # tokens
    for chunk in chunks:
        train: Tokenised = []
        out: Tokenised = []
        for document in chunk:
            size, due = len(document[0]), share * seen > held  # never the first document as a whole
            seen += size
            before, after = _cut([document], size - _taken(size, due, share * seen - held, share * seen / 4))
            train += before
            out += after
            held += sum(len(ids) for ids, *_ in after)
        yield train, out


def _taken(size: int, due: bool, owed: float, room: float) -> int:
    """How many tokens of a document are held out: none, all, or its end; `room`: how many more than are owed."""
    if due and size <= max(SHORT, owed, room):
        return size
    return max(int(owed), STRETCH) if due or owed >= STRETCH else 0


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
