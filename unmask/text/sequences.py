"""Sequences of words: every run of up to n words of a text as a hash, so that they can be counted without strings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask import chance
from unmask.text.boundaries import HAN, LETTER, SPACE, Words, classes_of, codes_of, word_starts
from unmask.text.lexicon import inside_word

_TIES = [ord(mark) for mark in "-'’"]  # what ties letters into one word that is counted as two


@dataclass(frozen=True)
class Sequences:
    """The words of a text, W in all, and the sequences of n words that begin with each of them."""

    text: str
    start: np.ndarray  # W, first character
    end: np.ndarray  # W, behind the last character
    keys: dict[int, np.ndarray]  # per n: W - n + 1 hashes of the n words and of how they are joined
    whole: dict[int, np.ndarray]  # per n: are these n words indeed, with nothing or one space between them?
    free: np.ndarray  # W 2, may a phrase begin, may one end with this word? Not within "well-known", "don't" or "naïve"

    @classmethod
    def of(cls, text: str, words: Words, longest: int) -> Sequences:
        """Words as `prepare` finds them. What has a mark in it, such as "3.5", is in no sequence, nor is a number."""
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
        """The n words from this one on, as they stand in the text."""
        return self.text[self.start[first] : self.end[first + n - 1]]


def _ends(kinds: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Behind the last character of each word, which is no space."""
    solid = np.maximum.accumulate(np.where(kinds != SPACE, np.arange(1, len(kinds) + 1), 0))
    return solid[np.append(start[1:], len(kinds))[: len(start)] - 1]


def _all_within(flags: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each word: has every character of it the flag?"""
    total = np.concatenate(([0], np.cumsum(flags)))
    return total[end] - total[start] == end - start


def _free(codes: np.ndarray, kinds: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """W 2: whether each word begins, and ends, where a phrase may. The possessive 's may follow one."""
    letter = np.concatenate(([False, False], kinds == LETTER, [False, False]))  # two places further on
    around = np.concatenate(([0, 0], codes, [0, 0]))
    tied_before = np.isin(around[start + 1], _TIES) & letter[start]
    tied_behind = (around[end + 2] == ord("-")) & letter[end + 3]
    return ~np.stack((inside_word(kinds, start) | tied_before, inside_word(kinds, end) | tied_behind), 1)


def _word_keys(codes: np.ndarray, kinds: np.ndarray, begins: np.ndarray, start: np.ndarray) -> np.ndarray:
    """A hash per word: the sum of the hashes of its characters at their places."""
    if not len(start):
        return start
    place = np.arange(len(codes)) - start[np.cumsum(begins) - 1]
    hashes = chance.draw((codes << 32) + place)
    hashes[kinds == SPACE] = 0
    return chance.draw(np.add.reduceat(hashes, start))
