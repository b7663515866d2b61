"""Phrase mining: find word sequences that are cohesive and free, in two passes over a corpus and in bounded memory.

A sequence is cohesive if its words occur together more often than by chance. This is measured by normalised pointwise
mutual information, log(p(ab) / p(a)p(b)) / -log p(ab), of the sequence against its best split in two; 1 means that
neither part occurs without the other.
A sequence is free if many different words can come before and after it. This is measured by the entropy of its
neighbours in bits, on the side where it is smaller; so a piece of a longer phrase is not a phrase. A neighbour that is
not a word (punctuation, the end of a line) counts as a different neighbour each time: it is a clear boundary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.errors import require
from unmask.text.boundaries import CHINESE, Words, available
from unmask.text.documents import Corpus
from unmask.text.ngram_counts import Counts
from unmask.text.sequences import Sequences

CHUNK = 1 << 21  # characters read at a time
_UNKNOWN, _REFUSED = -2, -1


@dataclass(frozen=True)
class Mining:
    """The settings that decide what is a phrase."""

    longest: int = 4  # most words in a phrase; a phrase has at least two
    least_count: int = 10  # occurrences in the corpus
    least_pmi: float = 0.5  # normalised PMI, below 1
    least_entropy: float = 2.0  # bits
    most_ngrams: int = 10_000_000  # in a table of counts; 16 bytes each, and there are two tables

    def __post_init__(self) -> None:
        require(self.longest >= 2, "the longest phrase must have 2 words or more, got {longest}", longest=self.longest)
        require(
            self.least_count >= 2, "the least count must be 2 or more, got {least_count}", least_count=self.least_count
        )
        require(
            -1 <= self.least_pmi < 1,
            "the least PMI must be in [-1, 1), got {least_pmi:g}: it is normalised",
            least_pmi=self.least_pmi,
        )
        require(
            self.least_entropy >= 0,
            "the least entropy must be 0 bits or more, got {least_entropy:g}",
            least_entropy=self.least_entropy,
        )
        require(
            self.most_ngrams >= 100,
            "a table must hold 100 n-grams or more, got {most_ngrams}",
            most_ngrams=self.most_ngrams,
        )


@dataclass(frozen=True)
class Phrase:
    """A phrase that was found."""

    text: str
    count: int
    pmi: float  # normalised PMI against the best split
    entropy: float  # bits, of the side where it is smaller


class Miner:
    """Reads a corpus twice and then gives its phrases: `for progress in miner.read(): ...`, then `miner.phrases()`."""

    def __init__(self, corpus: Corpus, mining: Mining, *, words: Words = "auto") -> None:
        self.corpus, self.mining = corpus, mining
        self.requested, self.way = words, available(words)
        self.words = 0  # in the corpus, without numbers and punctuation
        self.table = Counts(mining.most_ngrams)

    def read(self) -> Iterator[dict[str, Any]]:
        """First count, then collect the neighbours of frequent sequences. Yields a progress record per chunk."""
        for sequences in self._sequences():
            self.words += int(sequences.whole[1].sum())
            self.table.add(np.concatenate([keys[sequences.whole[n]] for n, keys in sequences.keys.items()]))
            yield self._progress(0)
        self.table.keep(self.mining.least_count - self.table.floor)  # a part of a phrase is never rarer than the phrase
        self.candidates = Candidates(self.table, self.words, self.mining)
        for sequences in self._sequences():
            self.candidates.see(sequences)
            yield self._progress(1)

    def phrases(self) -> list[Phrase]:
        """Phrases, best first: by squared PMI times log count. So neither rare names nor very common phrases come first."""
        return sorted(self.candidates.phrases(), key=lambda p: (-(p.pmi**2) * math.log(p.count), p.text))

    def _sequences(self) -> Iterator[Sequences]:
        for text in map("\n".join, self.corpus.chunks(CHUNK)):
            if self.way != self.requested and CHINESE.search(text):
                self.corpus.notes[
                    "chunks of Chinese text were read with every character as a word: pip install 'unmask[zh]'"
                ] += 1
            yield Sequences.of(text, self.way, self.mining.longest)

    def _progress(self, passes: int) -> dict[str, Any]:
        size = self.corpus.bytes_total
        return {"words": self.words, "bytes": passes * size + self.corpus.bytes_done, "bytes_total": 2 * size}


class Candidates:
    """Frequent sequences. Each is tested by its PMI when first seen; if it passes, its neighbours are counted."""

    def __init__(self, table: Counts, words: int, mining: Mining) -> None:
        self.table, self.words, self.mining = table, words, mining
        self.state = np.full(len(table) + 1, _UNKNOWN)  # per key of the table: its number among the accepted sequences
        self.state[-1] = _REFUSED  # for sequences that are not in the table
        self.texts: list[str] = []  # per number
        self.pmi: list[float] = []  # per number
        self.times = np.zeros(len(table), dtype=np.int64)  # per number: occurrences where a phrase may begin and end
        self.neighbours = Counts(mining.most_ngrams)
        # the key of a neighbour: number and side in the high bits, the hash in the low bits
        self.shift = 62 - (2 * len(table)).bit_length()

    def see(self, sequences: Sequences) -> None:
        """Add the sequences of a text, and their neighbours."""
        found = [self._see(sequences, n) for n in range(2, self.mining.longest + 1)]
        self.neighbours.add(np.concatenate(found))

    def _see(self, sequences: Sequences, n: int) -> np.ndarray:
        """Keys of the neighbours of all accepted sequences of n words."""
        free = sequences.free
        first = np.flatnonzero(sequences.whole[n] & free[: len(sequences.whole[n]), 0] & free[n - 1 :, 1])
        distinct, at, which = np.unique(sequences.keys[n][first], return_index=True, return_inverse=True)
        places = self.table.places(distinct)
        state = self.state[places]
        new = np.flatnonzero(state == _UNKNOWN)
        state[new] = self.state[places[new]] = self._judge(sequences, n, first[at[new]], self.table.counts[places[new]])
        number, accepted = state[which], state[which] >= 0
        number, first = number[accepted], first[accepted]
        self.times += np.bincount(number, minlength=len(self.times))
        # whether a word directly follows the word before it
        meets = np.concatenate(([False], sequences.whole[2], [False]))
        sides = ((number * 2, first - 1, meets[first]), (number * 2 + 1, first + n, meets[first + n]))
        return np.concatenate([self._key(side[there], sequences.keys[1][word[there]]) for side, word, there in sides])

    def _key(self, side: np.ndarray, word: np.ndarray) -> np.ndarray:
        return (side << self.shift) | (word >> (63 - self.shift))

    def _judge(self, sequences: Sequences, n: int, first: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Give a number to each sequence whose PMI is high enough; a sequence is given by its first word."""
        split = np.zeros(len(first))
        for k in range(1, n):
            parts = (sequences.keys[k][first], sequences.keys[n - k][first + k])
            # a part is at least as frequent as the whole, even if the table has lost some of its count
            left, right = (np.log(np.maximum(self.table.of(keys), count)) for keys in parts)
            split = np.maximum(split, left + right)
        total, times = math.log(max(self.words, 1)), np.log(count)
        pmi = (total + times - split) / np.maximum(total - times, 1e-9)
        passed = np.flatnonzero(pmi >= self.mining.least_pmi)
        numbers = np.full(len(first), _REFUSED)
        numbers[passed] = len(self.texts) + np.arange(len(passed))
        self.texts += [sequences.spelled(word, n) for word in first[passed].tolist()]
        self.pmi += pmi[passed].tolist()
        return numbers

    def phrases(self) -> list[Phrase]:
        """The frequent and free sequences. If a text was cut into words in several ways, the most frequent way counts."""
        entropy = self._entropy()
        enough = (self.times >= self.mining.least_count)[: len(entropy)] & (entropy >= self.mining.least_entropy)
        found: dict[str, Phrase] = {}
        for number in np.flatnonzero(enough).tolist():
            text, count = self.texts[number], int(self.times[number])
            if text not in found or found[text].count < count:
                found[text] = Phrase(text, count, self.pmi[number], float(entropy[number]))
        return list(found.values())

    def _entropy(self) -> np.ndarray:
        """Bits per number, of the smaller side. A neighbour that is not in the table counts as a different one each time."""
        times = np.maximum(self.times[: len(self.texts)], 1).repeat(2)
        side = self.neighbours.keys >> self.shift
        counts = self.neighbours.counts
        terms = counts * np.log2(times[side] / counts)
        alone = times - np.bincount(side, weights=counts, minlength=len(times))
        bits = (np.bincount(side, weights=terms, minlength=len(times)) + alone * np.log2(times)) / times
        return bits.reshape(-1, 2).min(1)
