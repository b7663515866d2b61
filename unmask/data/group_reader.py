"""The reader of shuffled rows: documents are split into groups of about a million tokens, then arranged and shuffled.

A group depends only on (seed, group, visit).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unmask import chance
from unmask.axes import Arrange, Part
from unmask.data.arrange import special_ids
from unmask.data.pack import pack
from unmask.data.reader import Block, Place, Slot
from unmask.data.shards import Collection
from unmask.errors import require
from unmask.text import Tokenizer
from unmask.text.columns import Column

GROUP_TOKENS = 1 << 20


class GroupReader:
    """One data set in groups, for one row length."""

    continuing = False
    reuse = None
    lengths = None

    def __init__(
        self, collection: Collection, tokenizer: Tokenizer, arrange: Arrange, layout: str, length: int, seed: int
    ) -> None:
        require(len(collection) > 0, "the data holds no document: prepare a corpus that has text")
        self.collection, self.layout, self.length, self.seed = collection, layout, length, seed
        self.arrange = arrange.ready(tokenizer)
        self.specials = special_ids(tokenizer, layout)
        self.pad = tokenizer.vocabulary.pad
        self.groups = self._grouped()

    @property
    def columns(self) -> dict[str, Column]:
        return self.collection.columns

    def _grouped(self) -> list[np.ndarray]:
        """Documents in a fixed random order, cut into groups of about GROUP_TOKENS."""
        numbers = np.arange(len(self.collection))
        order = np.argsort(chance.draw(numbers, self.seed, chance.purpose("deal documents")), kind="stable")
        group = (np.cumsum(self.collection.lengths[order]) - 1) // GROUP_TOKENS
        merged: list[np.ndarray] = []
        for documents in np.split(order, np.flatnonzero(np.diff(group)) + 1):
            if merged and min(len(documents), len(merged[-1])) == 1:  # pairs need another document to draw from
                merged[-1] = np.concatenate((merged[-1], documents))
            else:
                merged.append(documents)
        return merged

    def check(self, slot: Slot) -> None:
        """Any number of rows in a step is allowed."""

    def block(self, place: Place, slot: Slot) -> Block:
        """One group of documents in a visit, arranged, packed and shuffled."""
        visit = place.visit
        number = int(self._shuffled(len(self.groups), "groups", visit)[place.block])
        texts = self.collection.gather(self.groups[number])
        rng = chance.generator(self.seed, visit, number, chance.purpose("arrange"))
        runs = self.arrange.runs(texts, self.layout, self.length, rng)
        rows = pack(texts, runs, self.specials, self.pad, self.length, self.arrange.packed)
        order = self._shuffled(len(rows), "rows", visit, number)
        address = (((slot.source << 24) + number) << 24) + np.arange(len(rows))
        return Block(rows, order, address, visit, runs.notes)

    def _shuffled(self, count: int, purpose: str, *counters: int) -> np.ndarray:
        keys = chance.draw(np.arange(count), self.seed, *counters, chance.purpose(purpose))
        return np.argsort(keys, kind="stable")

    def after(self, place: Place, slot: Slot) -> Place:
        if place.block + 1 < len(self.groups):
            return Place(place.visit, place.block + 1)
        return Place(place.visit + 1)

    def next_stage(self, place: Place, slot: Slot) -> Place:
        return self.after(place, slot) if place.row else place


class Shuffled(Part):
    """The base of arrangements whose rows are read in random order."""

    continuous = False

    def ready(self, tokenizer: Tokenizer) -> Any:
        return self

    def open(
        self: Arrange, collection: Collection, tokenizer: Tokenizer, layout: str, length: int, seed: int, *,
        shuffled: bool = True,
    ) -> GroupReader:  # fmt: skip
        """The reader of a data set. The order does not matter for held-out rows, so `shuffled` has no effect."""
        return GroupReader(collection, tokenizer, self, layout, length, seed)
