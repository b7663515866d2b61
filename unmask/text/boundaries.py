"""Where words begin, as character positions of the original text, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from unmask.errors import UserError, unknown

Words = Literal["auto", "spaces", "rjieba", "none"]

WORDS: dict[str, Words] = {"auto": "auto", "spaces": "spaces", "rjieba": "rjieba", "none": "none"}

SPACE, LETTER, PUNCTUATION, HAN, NEWLINE = range(5)

CHINESE = re.compile("[\u4e00-\u9fff]{4}")  # enough of it in a row to be a text in Chinese


def words_named(name: str) -> Words:
    """One of the ways to find words, by its name."""
    if name not in WORDS:
        raise unknown("way to find words", name, WORDS)
    return WORDS[name]


def available(words: Words) -> Words:
    """What this machine can do: `auto` is `spaces` where the Chinese segmenter is not installed."""
    return "spaces" if words == "auto" and find_spec("rjieba") is None else words


def codes_of(text: str) -> np.ndarray:
    """One code point per character, so that character classes are a table look-up."""
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)


def classes_of(codes: np.ndarray) -> np.ndarray:
    """SPACE, LETTER, PUNCTUATION, HAN or NEWLINE per character."""
    table = _class_table()
    kinds = table[np.minimum(codes, 0xFFFF)]
    astral = codes > 0xFFFF
    if astral.any():  # emoji and symbols stand alone, and so do the rarer Han characters
        han = (codes >= 0x20000) & (codes <= 0x323AF)
        kinds = np.where(astral, np.where(han, HAN, PUNCTUATION), kinds).astype(np.uint8)
    return kinds


def word_starts(text: str, kinds: np.ndarray, words: Words, *, cutter: Any = None) -> np.ndarray:
    """True on every character that begins a word.

    `spaces`: runs of letters and digits; each punctuation mark and each Han character alone.
    `rjieba`: the segmenter's words, line by line. `auto`: the segmenter on lines that hold Han, `spaces` on the rest.
    `cutter`: a segmenter with words of the user's own; none: as it comes.
    """
    if words == "none":
        return kinds != SPACE
    starts = _spaced(kinds)
    han = kinds == HAN if words == "auto" else kinds >= 0
    if words == "spaces" or not han.any():
        return starts
    lines = text.splitlines(keepends=True)
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    chosen = np.logical_or.reduceat(han, np.cumsum(lengths) - lengths)
    return np.where(np.repeat(chosen, lengths), _segmented(lines, chosen, kinds, cutter or segmenter()), starts)


def _segmented(lines: Sequence[str], chosen: np.ndarray, kinds: np.ndarray, cutter: Any) -> np.ndarray:
    """True where the segmenter begins a word, in the chosen lines; the others are one word each."""
    cut = cutter.cut
    sizes: list[int] = []  # numpy once for all lines: for each line it would cost as much as the segmenter
    for line, cuts in zip(lines, chosen.tolist(), strict=True):
        if cuts:
            sizes.extend(map(len, cut(line)))
        else:
            sizes.append(len(line))
    begins = np.zeros(len(kinds) + 1, dtype=bool)
    begins[0] = True
    begins[np.cumsum(sizes)] = True
    return begins[:-1] & (kinds != SPACE)


def _spaced(kinds: np.ndarray) -> np.ndarray:
    before = np.concatenate(([SPACE], kinds[:-1]))
    return (kinds > LETTER) | ((kinds == LETTER) & (before != LETTER))


@cache
def _class_table() -> np.ndarray:
    table = np.full(0x10000, PUNCTUATION, dtype=np.uint8)
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        if category in ("Zs", "Zl", "Zp", "Cc"):
            table[code] = SPACE
        elif category[0] in "LNM" or category in ("Cf", "Cs"):
            table[code] = LETTER
    table[ord("\n")] = NEWLINE
    for first, last in ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)):
        table[first : last + 1] = HAN
    return table


@cache
def segmenter() -> Any:
    """The segmenter of Chinese; that it is not installed is an error."""
    try:
        import rjieba
    except ImportError:
        raise UserError(
            "the text holds Chinese, and its words need rjieba: pip install 'unmask[zh]', "
            "or take every character as a word with --words spaces"
        ) from None
    return rjieba
