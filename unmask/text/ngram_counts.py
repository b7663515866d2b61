"""A table of counts in bounded memory: when it is full, the rarest keys are dropped (a form of lossy counting)."""

from __future__ import annotations

import numpy as np

from unmask.errors import require


class Counts:
    """The number of times each key was added. A key that was added more than `floor` times is never lost, and its count is
    at most `floor` too low.

    Keys are 63-bit hashes. Collisions are so unlikely that they are ignored.
    """

    def __init__(self, most: int) -> None:
        require(most >= 2, "a table of counts needs room for 2 keys or more, got {most}", most=most)
        self.most = most
        self.floor = 0
        self.keys = np.zeros(0, dtype=np.int64)  # sorted
        self.counts = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, keys: np.ndarray) -> None:
        """Count these keys; a key may occur several times."""
        distinct, times = np.unique(keys, return_counts=True)
        places = self.places(distinct)
        known = places >= 0
        self.counts[places[known]] += times[known]
        new = np.searchsorted(self.keys, distinct[~known])
        self.keys = np.insert(self.keys, new, distinct[~known])
        self.counts = np.insert(self.counts, new, times[~known])
        if len(self) > self.most:
            self._prune()

    def places(self, keys: np.ndarray) -> np.ndarray:
        """The index of each key in the table; -1 if it is not there."""
        if not len(self):
            return np.full(len(keys), -1)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def of(self, keys: np.ndarray) -> np.ndarray:
        """The counts of these keys; 0 if a key is not in the table."""
        places = self.places(keys)
        return np.where(places >= 0, np.append(self.counts, 0)[places], 0)

    def keep(self, least: int) -> None:
        """Drop all keys that were counted fewer times."""
        kept = self.counts >= least
        self.keys, self.counts = self.keys[kept], self.counts[kept]

    def _prune(self) -> None:
        """Drop the rarest keys, so that at least half of the table is free again."""
        place = len(self) - self.most // 2 - 1
        rarest = int(np.partition(self.counts, place)[place])
        self.keep(rarest + 1)
        self.floor += rarest
