"""Where words begin, as character positions in the original text, for English and Chinese."""

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

CHINESE = re.compile("[\u4e00-\u9fff]{4}")  # this many Chinese characters in a row: the text is Chinese


def words_named(name: str) -> Words:
    """The way to find words that has this name."""
    if name not in WORDS:
        raise unknown("way to find words", name, WORDS)
    return WORDS[name]


def available(words: Words) -> Words:
    """The way this machine supports: `auto` becomes `spaces` if the Chinese segmenter is not installed."""
    return "spaces" if words == "auto" and find_spec("rjieba") is None else words


def codes_of(text: str) -> np.ndarray:
    """One code point per character, so that the class of a character is a table lookup."""
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)


def classes_of(codes: np.ndarray) -> np.ndarray:
    """SPACE, LETTER, PUNCTUATION, HAN or NEWLINE per character."""
    table = _class_table()
    kinds = table[np.minimum(codes, 0xFFFF)]
    astral = codes > 0xFFFF
    if astral.any():  # each emoji, symbol and rare Han character is a word by itself
        han = (codes >= 0x20000) & (codes <= 0x323AF)
        kinds = np.where(astral, np.where(han, HAN, PUNCTUATION), kinds).astype(np.uint8)
    return kinds


def word_starts(text: str, kinds: np.ndarray, words: Words, *, cutter: Any = None) -> np.ndarray:
    """True on every character that begins a word.

    `spaces`: a run of letters and digits is a word; so is each punctuation mark and each Han character.
    `rjieba`: the words that the segmenter finds, line by line.
    `auto`: the segmenter for lines with Han characters, `spaces` for the others.
    `cutter`: a segmenter that knows the user's words; None: the default segmenter.
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
    """True where the segmenter begins a word, in the chosen lines. Each other line counts as one word."""
    cut = cutter.cut
    sizes: list[int] = []  # converted to numpy once for all lines: once per line would take as long as the segmenter
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


def segmenter(instead: str = "pass --words spaces to take every character as a word") -> Any:
    """The Chinese segmenter. If it is not installed, the error says what to do `instead` of installing it."""
    try:
        import rjieba
    except ImportError:
        raise UserError(
            f"Chinese words are found by rjieba, which is not installed: pip install 'unmask[zh]', or {instead}"
        ) from None
    return rjieba
