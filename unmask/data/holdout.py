"""The held-out split of a corpus: documents, or the ends of texts that are read as a whole; chunk by chunk, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from unmask.batch import Document
from unmask.text.columns import BEGINS, Column

STRETCH = 512  # tokens: a usual row; a shorter part says little about a text
SHORT = 4 * STRETCH  # tokens: a document up to this size is held out as a whole or not at all


def by_document(chunks: Iterable[list[Document]], share: float) -> Iterator[tuple[list[Document], list[Document]]]:
    """For each chunk, the documents to train on and the held-out ones: a share of the tokens, in whole documents if possible.

    As soon as fewer tokens are held out than the share, the next document is held out, whatever its size: short documents
    are not preferred. If a document is long compared with all text so far, only its end is held out.
    """
    seen = held = 0  # tokens
    for chunk in chunks:
        train: list[Document] = []
        out: list[Document] = []
        for document in chunk:
            size, due = len(document.ids), share * seen > held  # never the first document as a whole
            seen += size
            before, after = _cut([document], size - _taken(size, due, share * seen - held, share * seen / 4))
            train += before
            out += after
            held += sum(len(piece.ids) for piece in after)
        yield train, out


def _taken(size: int, due: bool, owed: float, room: float) -> int:
    """The number of tokens of a document to hold out: none, all, or its end. `owed`: tokens still to hold out. `room`: a
    document up to this size may be held out whole, even if fewer tokens are owed."""
    if due and size <= max(SHORT, owed, room):
        return size
    return max(int(owed), STRETCH) if due or owed >= STRETCH else 0


def by_stretch(chunks: Iterable[list[Document]], share: float) -> Iterator[tuple[list[Document], list[Document]]]:
    """For each chunk, the text to train on and the held-out end: a share of the tokens, in parts of STRETCH tokens or more."""
    owed = 0.0  # tokens not yet held out
    for chunk in chunks:
        total = sum(len(document.ids) for document in chunk)
        owed += share * total
        stretch = min(int(owed), total) if owed >= STRETCH else 0
        train, held = _cut(chunk, total - stretch)
        owed -= sum(len(piece.ids) for piece in held)
        yield train, held


def _cut(chunk: list[Document], at: int) -> tuple[list[Document], list[Document]]:
    """The part of the chunk before a token, and the rest. The document that holds this token is cut in two."""
    before: list[Document] = []
    after: list[Document] = []
    for document in chunk:
        size = len(document.ids)
        if at >= size:
            before.append(document)
        elif at <= 0:
            after.append(document)
        else:
            middle = _word_from(document.columns["word"], at)
            before.append(_piece(document, 0, middle))
            after.append(_piece(document, middle, size))
        at -= size
    return before, after


def _word_from(word: Column, at: int) -> int:
    """The next token that begins a word; the token `at` itself if no word begins soon."""
    return at + int((word.values[at : at + STRETCH // 2] == BEGINS).argmax())


def _piece(document: Document, begin: int, end: int) -> Document:
    """Some tokens of a document; the first of them begins a sentence."""
    inside = document.sentences[(document.sentences > begin) & (document.sentences < end)]
    columns = {name: column[begin:end] for name, column in document.columns.items()}
    return Document(document.ids[begin:end], np.concatenate(([begin], inside)) - begin, columns)
