"""Random row lengths: each step of continuing rows has its own length, so that rows do not end at the same places in every visit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unmask import chance

SHORTEST = 5  # tokens, as in the code of AWD-LSTM


@dataclass(frozen=True)
class RowLengths:
    """The lengths of rows: normal around a usual length, or around half of it."""

    usual: int
    deviation: float
    half: float  # share of the steps with half the usual length

    @property
    def longest(self) -> int:
        """Two deviations above the usual length; what is drawn above it is cut."""
        return self.usual + math.ceil(2 * self.deviation)

    def drawn(self, tokens: int, seed: int, visit: int) -> np.ndarray:
        """The length of each row of a stream of this many tokens: as many rows as fit."""
        random = chance.generator(seed, visit, chance.purpose("length of a row"))
        count = tokens // SHORTEST
        mean = np.where(random.random(count) < self.half, self.usual / 2, self.usual)
        found = np.clip(random.normal(mean, self.deviation).astype(np.int64), SHORTEST, self.longest)
        return found[np.cumsum(found) <= tokens]
