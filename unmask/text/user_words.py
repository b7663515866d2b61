"""The user's words for the Chinese segmenter: one word per line, or jieba's format `word frequency tag`.

Files are UTF-8 and may be compressed. Frequency and tag are optional. Blank lines and lines that begin with "# " are
skipped. A lexicon can be given too: everything after a tab is ignored, and entries that cannot be words, such as those with
a space, are left out and counted. A word without a frequency gets one that makes the segmenter keep the word together. The
words around it still count: 和美 does not cut 美国 in 和美国.
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
_FORM = "write one word per line, or jieba's 'word frequency tag'"


@dataclass(frozen=True)
class OwnWords:
    """The words of one file or more, and a segmenter that knows them. A spawned process loads them again."""

    paths: tuple[Path, ...]
    record: tuple[dict[str, Any], ...]  # per file: its name, checksum and number of words
    notes: dict[str, int]  # counts of words that have no effect, or not in every line
    segmenter: Any

    @classmethod
    def load(cls, paths: Sequence[str | Path], words: Words = "auto") -> OwnWords:
        """The words of all these files. If a word is given twice, the later one counts."""
        require(bool(paths), "no file with words was given: name one file or more")
        require(
            words in ("auto", "rjieba"),
            (
                "--words-from is for the Chinese segmenter, and --words {words} does not use it: leave one of them "
                "out; for phrases of several words with spaces, use --lexicon"
            ),
            words=words,
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
    """Counts of words that have no effect, or not in every line; each note shows the first word as an example."""
    reasons = {
        "that the segmenter still cuts, such as {!r}: raise their frequency": [
            word for word in words if list(made.cut(word)) != [word]
        ],
        "without a Chinese character, such as {!r}: they have an effect only in lines with Chinese characters": [
            word for word in words if not (classes_of(codes_of(word)) == HAN).any()
        ],
    }
    notes = {f"words of --words-from {text.format(found[0])}": len(found) for text, found in reasons.items() if found}
    return notes | (
        {"entries of a lexicon in --words-from that cannot be words, left out": left_out} if left_out else {}
    )


def _read(file: Path) -> tuple[dict[str, tuple[int | None, str | None]], int]:
    """Each word with its frequency and tag; and the number of lexicon entries that are not words."""
    require(file.is_file(), "no file with words at {file}: {form}", file=file, form=_FORM)
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
            raise UserError(
                "{file}, line {number:,}: {wrong} in {line!r}: {form}",
                file=file,
                number=number,
                wrong=wrong,
                line=line[:40],
                form=_FORM,
            )
        else:
            found[word] = (None if frequency is None else int(frequency), tag)
    require(bool(found), "{file} has no words: {form}", file=file, form=_FORM)
    return found, left_out


def _wrong(word: str, frequency: str | None) -> str | None:
    if not any(character.isalpha() for character in word):
        return "there is no word"
    if any(character.isspace() for character in word):
        return f"the word {word[:40]!r} has a space, and words of the segmenter never have one,"
    return "the frequency is 0" if frequency is not None and not int(frequency) else None
