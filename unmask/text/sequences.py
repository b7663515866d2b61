"""Word sequences (n-grams) of a text as hashes, so that they can be counted without strings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask import chance
from unmask.text.boundaries import HAN, LETTER, SPACE, Words, classes_of, codes_of, word_starts
from unmask.text.lexicon import inside_word

# marks inside a word, such as "well-known": the parts on both sides count as two words
_TIES = [ord(mark) for mark in "-'’"]


@dataclass(frozen=True)
class Sequences:
    """The W words of a text, and the sequences of n words that begin at each word."""

    text: str
    start: np.ndarray  # W, first character
    end: np.ndarray  # W, index after the last character
    keys: dict[int, np.ndarray]  # per n: W - n + 1 hashes of the n words and the gaps between them
    whole: dict[int, np.ndarray]  # per n: whether all n are words, with no gap or one space between them
    free: (
        np.ndarray
    )  # W 2: whether a phrase may begin, and end, with this word; not inside "well-known", "don't" or "naïve"

    @classmethod
    def of(cls, text: str, words: Words, longest: int) -> Sequences:
        """The sequences of a text, with words as `prepare` finds them. Numbers, and words with a mark such as "3.5", are in no
        sequence."""
        codes = codes_of(text).astype(np.int64)
        kinds = classes_of(codes)
        begins = word_starts(text, kinds, words)
        start = np.flatnonzero(begins)
        end = _ends(kinds, start)
        is_word = _all_within((kinds == LETTER) | (kinds == HAN), start, end)
        is_word &= ~_all_within((codes >= ord("0")) & (codes <= ord("9")), start, end)
        gap = start[1:] - end[:-1]
        meets = is_word[1:] & is_word[:-1] & ((gap == 0) | ((gap == 1) & (codes[end[:-1]] == ord(" "))))
        keys, whole = {1: _word_keys(codes, kinds, begins, start)}, {1: is_word}
        for n in range(2, longest + 1):
            keys[n] = chance.draw(keys[1][n - 1 :] + gap[n - 2 :], keys[n - 1][:-1])
            whole[n] = whole[n - 1][:-1] & meets[n - 2 :]
        return cls(text, start, end, keys, whole, _free(codes, kinds, start, end))

    def spelled(self, first: int, n: int) -> str:
        """The text of the n words that begin with this one."""
        return self.text[self.start[first] : self.end[first + n - 1]]


def _ends(kinds: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The index after the last character of each word that is not a space."""
    solid = np.maximum.accumulate(np.where(kinds != SPACE, np.arange(1, len(kinds) + 1), 0))
    return solid[np.append(start[1:], len(kinds))[: len(start)] - 1]


def _all_within(flags: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each word: whether the flag is set on all its characters."""
    total = np.concatenate(([0], np.cumsum(flags)))
    return total[end] - total[start] == end - start


def _free(codes: np.ndarray, kinds: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """W 2: whether a phrase may begin, and end, with each word. A phrase may end before a possessive 's."""
    letter = np.concatenate(([False, False], kinds == LETTER, [False, False]))  # shifted by two
    around = np.concatenate(([0, 0], codes, [0, 0]))
    tied_before = np.isin(around[start + 1], _TIES) & letter[start]
    tied_after = (around[end + 2] == ord("-")) & letter[end + 3]
    return ~np.stack((inside_word(kinds, start) | tied_before, inside_word(kinds, end) | tied_after), 1)


def _word_keys(codes: np.ndarray, kinds: np.ndarray, begins: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A hash per word: the sum of the hashes of its characters and their positions."""
    if not len(start):
        return start
    place = np.arange(len(codes)) - start[np.cumsum(begins) - 1]
    hashes = chance.draw((codes << 32) + place)
    hashes[kinds == SPACE] = 0
    return chance.draw(np.add.reduceat(hashes, start))
