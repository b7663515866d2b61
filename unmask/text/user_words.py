"""A user's own words for the Chinese segmenter: one a line, or jieba's format `word frequency tag`.

Files are UTF-8 and may be compressed. Frequency and tag may be left out. A lexicon can be given as well: what follows a tab
is ignored, and its entries that cannot be words, such as those with a space, are left out and counted. Blank lines and lines that begin with "# " are skipped. A word without a frequency gets one that
makes the segmenter keep it together; the words around it still count: 和美 does not cut 美国 in 和美国.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require
from unmask.text.boundaries import HAN, Words, classes_of, codes_of, segmenter
from unmask.text.lexicon import checksum
from unmask.text.lines import numbered_lines

_LINE = re.compile(r"(.+?)(?: +([0-9]+))?(?: +([a-z]+))?")
_FORM = "write one word a line, or jieba's 'word frequency tag'"


@dataclass(frozen=True)
class OwnWords:
    """Words of one file or more, and a segmenter that knows them; a process that is spawned loads them again."""

    paths: tuple[Path, ...]
    record: tuple[dict[str, Any], ...]  # per file: its name, checksum and number of words
    notes: dict[str, int]  # words that have no effect, or not everywhere
    segmenter: Any

    @classmethod
    def load(cls, paths: Sequence[str | Path], words: Words = "auto") -> OwnWords:
        """The words of these files together; the later one counts if a word is given twice."""
        require(bool(paths), "no file with words given: name one or more")
        require(
            words in ("auto", "rjieba"),
            f"--words-from is for the segmenter of Chinese, which --words {words} does not use: leave one of them out; "
            "phrases of several words with spaces between them can be given by --lexicon",
        )
        files = tuple(Path(path) for path in paths)
        read = [_read(file) for file in files]
        made = segmenter().Jieba()
        known = {word: how for found, _ in read for word, how in found.items()}
        for word, (frequency, tag) in known.items():
            made.add_word(word, frequency, tag)
        record = [
            {"file": file.name, "sha256": checksum(file), "words": len(found)}
            for file, (found, _) in zip(files, read, strict=True)
        ]
        left_out = sum(count for _, count in read)
        return cls(files, tuple(record), _notes(list(known), made, left_out), made)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnWords.load, (self.paths,)


def _notes(words: list[str], made: Any, left_out: int) -> dict[str, int]:
    """What has no effect, or not everywhere, with the first word as an example."""
    said = {
        "that the segmenter still cuts, such as {!r}: raise their frequency": [
            word for word in words if list(made.cut(word)) != [word]
        ],
        "without a Chinese character, such as {!r}: they count only in lines that have one": [
            word for word in words if not (classes_of(codes_of(word)) == HAN).any()
        ],
    }
    notes = {f"words of --words-from {text.format(found[0])}": len(found) for text, found in said.items() if found}
    return notes | (
        {"entries of a lexicon in --words-from that cannot be words, left out": left_out} if left_out else {}
    )


def _read(file: Path) -> tuple[dict[str, tuple[int | None, str | None]], int]:
    """Each word with its frequency and tag; and how many entries of a lexicon are no words."""
    require(file.is_file(), f"no file with words at {file}: {_FORM}")
    found: dict[str, tuple[int | None, str | None]] = {}
    left_out = 0
    for number, line in numbered_lines(file):
        if line.startswith("# ") or not line.strip():
            continue
        entry, tab, _ = line.partition("\t")
        match = None if tab else _LINE.fullmatch(entry.strip())
        word, frequency, tag = match.groups() if match else (entry.strip(), None, None)
        wrong = _wrong(word, frequency)
        if wrong and tab and word:
            left_out += 1
        elif wrong:
            raise UserError(f"{file}, line {number:,}: {wrong} in {line[:40]!r}: {_FORM}")
        else:
            found[word] = (None if frequency is None else int(frequency), tag)
    require(bool(found), f"{file} has no words: {_FORM}")
    return found, left_out


def _wrong(word: str, frequency: str | None) -> str | None:
    if not any(character.isalpha() for character in word):
        return "there is no word"
    if any(character.isspace() for character in word):
        return f"the word {word[:40]!r} has a space, which the segmenter's words never have,"
    return "the frequency is 0" if frequency is not None and not int(frequency) else None
