"""Words as tokens: where the words of a text begin and end, and how each is spelled.

English words end at spaces and punctuation. Chinese words are those of the segmenter. A word that the vocabulary lacks is
the unknown token, but its spelling is kept: a network that reads characters still gives it a vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.text.boundaries import HAN, NEWLINE, SPACE, classes_of, codes_of, segmenter, word_starts
from unmask.text.columns import Column

SPELLING = "spelling"  # the column of the UTF-8 bytes of each token: T C
BYTES = 48  # most bytes that are kept of a word
NO_BYTE = 255  # never a byte of UTF-8


@dataclass(frozen=True)
class WordEncoding:
    """The words of one text: their ids, and where each begins and ends."""

    ids: list[int]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)


def word_spans(texts: Sequence[str]) -> list[np.ndarray]:
    """For each text the begin and the end of every word, N 2."""
    text = "\n".join(texts)
    kinds = classes_of(codes_of(text))
    blank = (kinds == SPACE) | (kinds == NEWLINE)
    begin = np.flatnonzero(word_starts(text, kinds, "auto", cutter=_cutter(text, kinds)) & ~blank)
    stops = np.append(np.flatnonzero(blank), len(text))
    space = stops[np.searchsorted(stops, begin)]  # the first space after each begin
    spans = np.stack((begin, np.minimum(np.append(begin[1:], len(text)), space)), 1)
    lengths = np.array([len(text) + 1 for text in texts], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    edges = np.searchsorted(begin, first)
    return [part - at for part, at in zip(np.split(spans, edges[1:]), first, strict=True)]


def _cutter(text: str, kinds: np.ndarray) -> Any:
    """The segmenter if the text has Chinese characters. A model reads the same words on every machine, so nothing stands in for it."""
    chinese = np.flatnonzero(kinds == HAN)
    if not len(chinese):
        return None
    first = int(chinese[0])
    line = text[max(0, first - 20) : first + 20].replace("\n", " ")
    return segmenter(
        f"remove the Chinese characters from the text (the first: {line!r}), or choose tokens that are not whole words "
        "(--set tokenizer=WordPiece)"
    )


def spaced(text: str) -> str:
    """The text with one space between its words."""
    return " ".join(text[a:b] for a, b in word_spans([text])[0].tolist())


def spellings(words: Sequence[str]) -> Column:
    """The column of the bytes of each word."""
    joined = b"".join(word.encode("utf-8", "surrogatepass")[:BYTES].ljust(BYTES, b"\xff") for word in words)
    return Column(np.frombuffer(joined, np.uint8).reshape(len(words), BYTES), "value", NO_BYTE)
