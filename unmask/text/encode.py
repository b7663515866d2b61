"""From texts to documents: ids with the boundaries of words and sentences, found by offsets into the original."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from unmask.batch import Document
from unmask.text.boundaries import SPACE, Words, classes_of, codes_of, sentence_starts, word_starts
from unmask.text.tokenizer import Tokenizer


def encode_documents(texts: Sequence[str], tokenizer: Tokenizer, words: Words) -> list[Document]:
    """Tokenise line by line (a line keeps its end, which some vocabularies write), all lines in one call."""
    lines: list[str] = []
    lines_per_text: list[int] = []
    for text in texts:
        parts = [line for line in text.splitlines(keepends=True) if line.strip()]
        if parts:
            parts[-1] = parts[-1].rstrip()
        lines += parts
        lines_per_text.append(len(parts))
    encodings = tokenizer.encode_many(lines)
    counts = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
    total = int(counts.sum())
    ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), dtype=np.int64, count=total)
    pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))  # start, end, start, end ...
    starts = np.fromiter(pairs, dtype=np.int64, count=2 * total)[::2]
    joined = [line if line.endswith("\n") else line + "\n" for line in lines]
    starts = starts + np.repeat(_begin(np.array([len(line) for line in joined], dtype=np.int64)), counts)
    word, sentence = _boundaries("".join(joined), starts, words)
    firsts = _begin(counts)[counts > 0]  # whatever stands before it, the first token of a line begins a sentence
    word[firsts] = True
    sentence[firsts] = True
    edges = np.concatenate(([0], np.cumsum(counts)))[np.concatenate(([0], np.cumsum(lines_per_text, dtype=np.int64)))]
    return [
        Document(ids[a:b], word[a:b], np.flatnonzero(sentence[a:b])) for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]


def _boundaries(text: str, starts: np.ndarray, words: Words) -> tuple[np.ndarray, np.ndarray]:
    """For each token, given its first character: does it begin a word, does it begin a sentence?

    A token that begins inside a word continues it, even one that reaches into the next word: units stay whole.
    """
    kinds = classes_of(codes_of(text))
    word_begins = word_starts(text, kinds, words)
    first = _next_solid(kinds)[starts]  # a token may begin with the space before its word
    sentences = np.zeros(len(text) + 1, dtype=np.int64)
    sentences[sentence_starts(text)] = 1
    number = np.cumsum(sentences)[first]
    # several tokens may share one character (its bytes): only the first of them begins a word
    return word_begins[first] & _changes(first), _changes(number)


def _changes(values: np.ndarray) -> np.ndarray:
    changed = np.ones(len(values), dtype=bool)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _next_solid(kinds: np.ndarray) -> np.ndarray:
    """For each character, the next one (itself included) that is no space."""
    places = np.where(kinds != SPACE, np.arange(len(kinds)), len(kinds) - 1)
    return np.minimum.accumulate(places[::-1])[::-1]


def _begin(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
