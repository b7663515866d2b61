"""Lexicon: a list of phrases and entities, and where they occur in a text (the knowledge of ERNIE 1.0).

A lexicon file is UTF-8 with one entry per line: the entry, a tab, its level (`phrase` or `entity`). The rest of the line
after a second tab is ignored. Blank lines and lines that begin with "# " are ignored too. The file may be compressed
like a corpus.
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
    """The entries of both levels, ready to be matched. The levels are independent: an entry may be in both.

    It is built once. Forked processes share it; a spawned process gets the paths and loads it again.
    """

    paths: tuple[Path, ...]
    record: tuple[dict[str, Any], ...]  # per file: its name, checksum and number of entries per level
    finders: dict[str, Any]  # per level: an Aho-Corasick automaton; None if the level has no entries

    @classmethod
    def load(cls, paths: Sequence[str | Path]) -> Lexicon:
        """The entries of all these files."""
        require(bool(paths), "no lexicon was given: name one file or more, written by hand or by 'unmask lexicon'")
        files = tuple(Path(path) for path in paths)
        entries = [_read(file) for file in files]
        record = [
            {"file": file.name, "sha256": checksum(file)} | {level: len(found[level]) for level in LEVELS}
            for file, found in zip(files, entries, strict=True)
        ]
        finders = {level: finder_of(sorted(set().union(*(found[level] for found in entries)))) for level in LEVELS}
        return cls(files, tuple(record), finders)

    def matches(self, text: str, kinds: np.ndarray, level: str, *, begins: np.ndarray | None = None) -> np.ndarray:
        """M 2: start and end of every match of a level, in order; `kinds`: the class of each character.

        Matching is case-sensitive. A match that begins or ends inside a word does not count: "art" in "party", 和美 in
        和美国. Matches never overlap: the leftmost is taken, and of several that begin together the longest.
        `begins`: True on every character that begins a word; None: only words of letters are known.
        """
        if self.finders[level] is None:
            return np.zeros((0, 2), dtype=np.int64)
        return find_names(self.finders[level], text, kinds, begins=begins)[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return Lexicon.load, (self.paths,)


def find_names(
    finder: Any, text: str, kinds: np.ndarray, *, begins: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """M 2 and M: where entries of an automaton occur, as `Lexicon.matches` says, and the number of each entry."""
    found = finder.find_matches_as_indexes(text, overlapping=True)
    numbers = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=3 * len(found)).reshape(-1, 3)
    spans = numbers[:, 1:]  # entry, start, end
    inside = inside_word(kinds, spans)
    if begins is not None:
        inside |= np.append((kinds != SPACE) & ~begins, False)[spans]
    numbers = _leftmost_longest(numbers[~inside.any(1)])
    return numbers[:, 1:], numbers[:, 0]


def _leftmost_longest(numbers: np.ndarray) -> np.ndarray:
    """Choose spans (entry, start, end) that do not overlap, from left to right; of several that begin together, the
    longest."""
    numbers = numbers[np.lexsort((-numbers[:, 2], numbers[:, 1]))]
    spans = numbers[:, 1:]
    # the end of the text covered by all spans before
    reach = np.concatenate(([0], np.maximum.accumulate(spans[:, 1])))[:-1]
    alone = spans[:, 0] >= reach
    kept = alone.copy()
    end = 0
    for place in np.flatnonzero(~alone).tolist():  # only spans that overlap need this loop, and they are few
        if alone[place - 1]:
            end = spans[place - 1, 1]
        if spans[place, 0] >= end:
            kept[place], end = True, spans[place, 1]
    return numbers[kept]


def inside_word(kinds: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Whether there are letters on both sides of an edge; an edge is the index of the character after it."""
    letter = np.concatenate(([False], kinds == LETTER, [False]))
    return letter[edges] & letter[edges + 1]


def _read(file: Path) -> dict[str, set[str]]:
    require(
        file.is_file(),
        ("no lexicon at {file}: write one, or make one with 'unmask lexicon CORPUS --out {file}'"),
        file=file,
    )
    found: dict[str, set[str]] = {level: set() for level in LEVELS}
    for number, line in numbered_lines(file):
        if line.startswith("# ") or not line.strip():
            continue
        entry, tab, rest = line.partition("\t")
        level, entry = rest.partition("\t")[0].strip(), entry.strip()
        if not tab or not entry or level not in found:
            raise UserError(
                "{file}, line {number:,}: {wrong}", file=file, number=number, wrong=_wrong(entry, tab, level)
            )
        found[level].add(entry)
    require(
        any(found.values()),
        "the lexicon {file} has no entries: write one entry per line, followed by a tab and its level",
        file=file,
    )
    return found


def _wrong(entry: str, tab: str, level: str) -> str:
    if not tab:
        return f"there is no tab in {entry[:40]!r}: write the entry, a tab and its level ({' or '.join(LEVELS)})"
    if not entry:
        return "the entry before the tab is empty: write an entry, or delete the line"
    return f"{entry[:40]!r} has the unknown level {level[:40]!r}: allowed are {' and '.join(LEVELS)}"


def checksum(file: Path) -> str:
    """The SHA-256 of the bytes of a file."""
    with file.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


def finder_of(entries: list[str]) -> Any:
    """An Aho-Corasick automaton of these entries; None if there are none."""
    if not entries:
        return None
    try:
        from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
    except ImportError:
        raise UserError(
            "a lexicon needs ahocorasick_rs, which is not installed: pip install 'unmask[lexicon]'"
        ) from None
    return AhoCorasick(
        entries,
        matchkind=MatchKind.Standard,  # find all matches; the words around them decide later which ones count
        store_patterns=False,
        # with a million entries: 0.4 GB, and twice as fast as the other NFA; a DFA would need too many states
        implementation=Implementation.ContiguousNFA,
    )
