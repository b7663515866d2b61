"""Texts whose tokens say where they stand, so that every arrangement can be read back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from unmask.data import Texts
from unmask.data.arrange import ROLES, Runs
from unmask.data.loader import Loader, TrackReaders
from unmask.data.reader import Reader
from unmask.data.shards import Collection, Shard
from unmask.text.columns import Column, run_column

FIRST = 1000  # ids below are special
SPECIALS = [2, 3, 4, 5, 6, 7]  # in the order of ROLES: cls, sep, mask and those of GPT
CLS, SEP, *_ = SPECIALS


def texts_of(documents: Sequence[Sequence[int]], seed: int = 0) -> Texts:
    """Documents of sentences of these lengths; token number i has the id FIRST + i."""
    lengths = np.array([length for document in documents for length in document])
    sentence = np.concatenate(([0], np.cumsum(lengths)))
    word = np.random.default_rng(seed).random(sentence[-1]) < 0.6
    word[sentence[:-1]] = True
    counts = np.cumsum([0, *(len(document) for document in documents)])
    return Texts(np.arange(sentence[-1]) + FIRST, sentence, counts, {"word": run_column(word)})


def random_texts(documents: int, sentences: int, longest: int, seed: int = 0) -> Texts:
    dice = np.random.default_rng(seed)
    return texts_of([dice.integers(1, longest + 1, dice.integers(1, sentences + 1)).tolist() for _ in range(documents)])


def with_levels(texts: Texts, seed: int = 0) -> Texts:
    """The same texts with phrases and entities of random lengths, some side by side, none over a document's end."""
    dice = np.random.default_rng(seed)
    columns = {}
    for level in ("phrase", "entity"):
        marks = np.zeros(len(texts.ids), np.uint8)
        documents = texts.sentence[texts.document]
        for begin, end in zip(documents[:-1].tolist(), documents[1:].tolist(), strict=True):
            at = begin + int(dice.integers(0, 4))
            while at < end:
                stop = min(at + int(dice.integers(1, 6)), end)
                marks[at:stop] = [1] + [2] * (stop - at - 1)
                at = stop + int(dice.integers(0, 5))
        columns[level] = Column(marks)
    return dataclasses.replace(texts, columns=texts.columns | columns)


def collection_of(*all_texts: Texts) -> Collection:
    """A shard for each of the texts; the tokens of every shard but the first are numbered on."""
    shards, tokens = [], 0
    for texts in all_texts:
        shards.append(Shard(texts.ids + tokens, texts.sentence, texts.document, texts.columns))
        tokens += len(texts.ids)
    return Collection(shards)


def loader_of(readers: list[Reader], weights: list[float], rows: int = 8, state: dict | None = None) -> Loader:
    """The loader of a recipe without tracks."""
    return Loader([TrackReaders(readers)], weights, rows, state)


def examples_of(texts: Texts, runs: Runs) -> list[list[int]]:
    """The ids of every example, by a loop over its runs."""
    found: list[list[int]] = [[] for _ in range(len(runs.label))]
    for start, length, example in zip(runs.start.tolist(), runs.length.tolist(), runs.example.tolist(), strict=True):
        if start >= len(texts.ids):
            assert length == 1
            found[example].append(SPECIALS[start - len(texts.ids)])
        else:
            found[example] += texts.ids[start : start + length].tolist()
    assert len(ROLES) == len(SPECIALS)
    return found


def by_document(texts: Texts) -> list[list[list[int]]]:
    """Documents as lists of sentences of ids."""
    sentences = [texts.ids[a:b].tolist() for a, b in zip(texts.sentence[:-1], texts.sentence[1:], strict=True)]
    return [sentences[a:b] for a, b in zip(texts.document[:-1], texts.document[1:], strict=True)]
