"""A lexicon: phrases and entities known beforehand, and where they stand in a text (ERNIE 1.0's knowledge).

A lexicon file is UTF-8, one entry a line: the entry, a tab, its level (`phrase` or `entity`); what follows a second
tab is ignored, and so are blank lines and lines that begin with "# ". It may be compressed as a corpus may.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import UserError, require
from unmask.text.boundaries import LETTER, SPACE
from unmask.text.lines import numbered_lines

LEVELS = ("phrase", "entity")


@dataclass(frozen=True)
class Lexicon:
    """Entries of both levels, ready to be found. An entry of both counts in both: the levels know nothing of each other.

    Built once: processes that are forked share it; one that is spawned is given the paths and loads it again.
    """

    paths: tuple[Path, ...]
    record: tuple[dict[str, Any], ...]  # per file: its name, checksum and number of entries per level
    finders: dict[str, Any]  # per level: an Aho-Corasick automaton, None without entries

    @classmethod
    def load(cls, paths: Sequence[str | Path]) -> Lexicon:
        """The entries of these files together."""
        require(bool(paths), "no lexicon given: name one file or more, made by hand or with 'unmask lexicon'")
        files = tuple(Path(path) for path in paths)
        entries = [_read(file) for file in files]
        record = [
            {"file": file.name, "sha256": checksum(file)} | {level: len(found[level]) for level in LEVELS}
            for file, found in zip(files, entries, strict=True)
        ]
        finders = {level: _finder(sorted(set().union(*(found[level] for found in entries)))) for level in LEVELS}
        return cls(files, tuple(record), finders)

    def matches(self, text: str, kinds: np.ndarray, level: str, *, begins: np.ndarray | None = None) -> np.ndarray:
        """M 2: first character and end of every match of a level, in order; `kinds` are the characters' classes.

        Exact in case. A match that begins or ends inside a word does not count: "art" in "party", 和美 in 和美国. Of the
        others the leftmost, then the longest, never overlapping. `begins`: True on every character that begins a word;
        none: only words of letters are known.
        """
        if self.finders[level] is None:
            return np.zeros((0, 2), dtype=np.int64)
        found = self.finders[level].find_matches_as_indexes(text, overlapping=True)
        numbers = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=3 * len(found))
        spans = numbers.reshape(-1, 3)[:, 1:]  # entry, start, end
        inside = inside_word(kinds, spans)
        if begins is not None:
            inside |= np.append((kinds != SPACE) & ~begins, False)[spans]
        return _leftmost_longest(spans[~inside.any(1)])

    def __reduce__(self) -> tuple[Any, ...]:
        return Lexicon.load, (self.paths,)


def _leftmost_longest(spans: np.ndarray) -> np.ndarray:
    """Of all spans those that remain when each hides what overlaps it; the leftmost first, of these the longest."""
    spans = spans[np.lexsort((-spans[:, 1], spans[:, 0]))]
    reach = np.concatenate(([0], np.maximum.accumulate(spans[:, 1])))[:-1]  # how far the spans before go
    alone = spans[:, 0] >= reach
    kept = alone.copy()
    end = 0
    for place in np.flatnonzero(~alone).tolist():  # few: the others need no loop
        if alone[place - 1]:
            end = spans[place - 1, 1]
        if spans[place, 0] >= end:
            kept[place], end = True, spans[place, 1]
    return spans[kept]


def inside_word(kinds: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Whether there are letters on both sides of an edge, given as the character after it."""
    letter = np.concatenate(([False], kinds == LETTER, [False]))
    return letter[edges] & letter[edges + 1]


def _read(file: Path) -> dict[str, set[str]]:
    require(file.is_file(), f"no lexicon at {file}: write one, or mine one with 'unmask lexicon CORPUS --out {file}'")
    found: dict[str, set[str]] = {level: set() for level in LEVELS}
    for number, line in numbered_lines(file):
        if line.startswith("# ") or not line.strip():
            continue
        entry, tab, rest = line.partition("\t")
        level, entry = rest.partition("\t")[0].strip(), entry.strip()
        if not tab or not entry or level not in found:
            raise UserError(f"{file}, line {number:,}: {_wrong(entry, tab, level)}")
        found[level].add(entry)
    require(any(found.values()), f"the lexicon {file} has no entries: write lines of an entry, a tab and its level")
    return found


def _wrong(entry: str, tab: str, level: str) -> str:
    if not tab:
        return f"no tab in {entry[:40]!r}: write the entry, a tab and its level ({' or '.join(LEVELS)})"
    if not entry:
        return "the entry before the tab is empty: write it, or leave the line out"
    return f"unknown level {level[:40]!r} of {entry[:40]!r}: allowed are {' and '.join(LEVELS)}"


def checksum(file: Path) -> str:
    """Of a file, as it is."""
    with file.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


def _finder(entries: list[str]) -> Any:
    if not entries:
        return None
    try:
        from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
    except ImportError:
        raise UserError("a lexicon is matched by ahocorasick_rs: pip install 'unmask[lexicon]'") from None
    return AhoCorasick(
        entries,
        matchkind=MatchKind.Standard,  # all of them: which count depends on the words around them
        store_patterns=False,
        # a million entries: 0.4 GB and twice the speed of the other NFA; the DFA would need more states than it can name
        implementation=Implementation.ContiguousNFA,
    )
