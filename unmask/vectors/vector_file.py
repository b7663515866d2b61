"""Files of word vectors: the text and the binary format of word2vec, and the text format of GloVe, which has no first line.

The name of a file gives the format: `.bin` is binary, every other name is text. A text file has one word in each line,
followed by its numbers. The first line of word2vec's format has two numbers: how many words, and how many dimensions.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from unmask.errors import UserError, require
from unmask.text.atomic_write import check_free, drafted
from unmask.text.lines import numbered_lines

BINARY = ".bin"
_LONGEST_WORD = 10_000  # bytes; a longer "word" means that the file is damaged
_BLOCK = 1 << 14  # words that are read or written at a time


@dataclass(frozen=True)
class WordVectors:
    """Words, most frequent first, and one vector for each of them."""

    words: tuple[str, ...]
    matrix: np.ndarray  # words x dims, float32
    notes: dict[str, int] = field(default_factory=dict)  # what was left out when the file was read

    @property
    def dims(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def places(self) -> dict[str, int]:
        """The row of each word."""
        return {word: place for place, word in enumerate(self.words)}


def read_vectors(file: str | Path) -> WordVectors:
    """The vectors of a file. A word that comes twice keeps its first vector."""
    file = _present(file)
    words, matrix = _read_binary(file) if file.suffix == BINARY else _read_text(file)
    first = {word: place for place, word in reversed(list(enumerate(words)))}
    if len(first) == len(words):
        return WordVectors(tuple(words), matrix)
    kept = sorted(first.values())
    notes = {f"words of {file.name} come more than once: the first vector of each is used": len(words) - len(first)}
    return WordVectors(tuple(words[place] for place in kept), matrix[kept], notes)


def dims_of(file: str | Path) -> int:
    """The dimensions of the vectors of a file, by its first line alone."""
    file = _present(file)
    if file.suffix == BINARY:
        with file.open("rb") as stream:
            return _binary_header(stream, file)[1]
    return _text_header(file, next(numbered_lines(file), (0, ""))[1])[1]


def _present(file: str | Path) -> Path:
    file = Path(file)
    require(file.is_file(), "no word vectors at {file}: make them with 'unmask vectors CORPUS --out {file}'", file=file)
    return file


def write_vectors(vectors: WordVectors, out: str | Path, *, overwrite: bool = False) -> None:
    """Write a file in the format that its name gives."""
    out = Path(out)
    check_free(out, overwrite=overwrite)
    binary = out.suffix == BINARY
    with drafted(out) as draft, draft.open("wb") as stream:
        stream.write(f"{len(vectors.words)} {vectors.dims}\n".encode())
        for word, vector in zip(vectors.words, vectors.matrix.astype("<f4"), strict=True):
            numbers = vector.tobytes() if binary else " ".join(f"{number:.6g}" for number in vector.tolist()).encode()
            stream.write(word.encode() + b" " + numbers + b"\n")


def _read_text(file: Path) -> tuple[list[str], np.ndarray]:
    lines = numbered_lines(file)
    first = next(lines, (0, ""))[1]
    promised, dims = _text_header(file, first)
    words: list[str] = []
    blocks: list[np.ndarray] = []
    waiting: list[np.ndarray] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how numpy says that a text is not a number
        for number, line in chain([(1, first)] if promised is None else [], lines):
            word, vector = _parsed(file, number, line, dims)
            words.append(word)
            waiting.append(vector)
            if len(waiting) == _BLOCK:
                blocks.append(np.stack(waiting))
                waiting = []
    blocks += [np.stack(waiting)] if waiting else []
    require(bool(words), "{file} has no words after its first line: the file was cut off", file=file)
    require(
        promised is None or promised == len(words),
        "{file}: the first line promises {promised:,} words, and {found:,} follow: the file was cut off or changed",
        file=file,
        promised=promised or 0,
        found=len(words),
    )
    return words, np.concatenate(blocks)


def _text_header(file: Path, first: str) -> tuple[int | None, int]:
    """What the first line of a text file says: how many words (None: it is not said), and how many dimensions."""
    require(bool(first.strip()), "{file} is empty: it must have a word and its numbers in each line", file=file)
    header = _header(first)
    dims = header[1] if header else len(first.rstrip().split(" ")) - 1
    require(
        dims >= 1,
        "{file}, line 1: {line!r:.60} has a word but no numbers: write a word and its numbers, with spaces between them",
        file=file,
        line=first,
    )
    return header[0] if header else None, dims


def _header(line: str) -> tuple[int, int] | None:
    """How many words and dimensions, if this is the first line of word2vec's format."""
    parts = line.split()
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(part.isdecimal() for part in parts) else None


def _parsed(file: Path, number: int, line: str, dims: int) -> tuple[str, np.ndarray]:
    """The word of a line, and its vector."""
    word, _, rest = line.rstrip().partition(" ")
    try:
        vector = np.fromstring(rest, dtype=np.float32, sep=" ")
    except (ValueError, DeprecationWarning):  # in a later numpy only ValueError
        vector = np.zeros(0, dtype=np.float32)
    if len(vector) == dims and word and np.isfinite(vector).all():
        return word, vector
    parts = line.rstrip().rsplit(" ", dims)  # some files have words with spaces
    numbers = [part for part in parts[1:] if _is_number(part)]
    if len(numbers) == dims and parts[0] and not _is_number(parts[0].rpartition(" ")[2]):
        return parts[0], np.array(numbers, dtype=np.float32)
    raise UserError(
        "{file}, line {number:,}: this line must have a word and {dims} finite numbers, with one space between them, got "
        "{line!r}: repair or remove the line",
        file=file,
        number=number,
        dims=dims,
        line=line if len(line) <= 60 else f"{line[:28]} ... {line[-28:]}",
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _read_binary(file: Path) -> tuple[list[str], np.ndarray]:
    with file.open("rb") as stream:
        count, dims = _binary_header(stream, file)
        held = file.stat().st_size // (4 * dims) + 1  # a damaged first line may promise more than fits into memory
        words, matrix = [], np.empty((min(count, held), dims), dtype=np.float32)
        for place in range(count):
            words.append(_binary_word(stream, file, place))
            numbers = stream.read(4 * dims)
            require(
                len(numbers) == 4 * dims,
                "{file} ends in word {place:,} of {count:,}: the file was cut off; download or write it again",
                file=file,
                place=place + 1,
                count=count,
            )
            matrix[place] = np.frombuffer(numbers, dtype="<f4")
    require(bool(np.isfinite(matrix).all()), "{file} has numbers that are not finite: write it again", file=file)
    return words, matrix


def _binary_header(stream: BinaryIO, file: Path) -> tuple[int, int]:
    header = _header(stream.readline(100).decode("ascii", errors="replace"))
    if header is None or 0 in header:
        raise UserError(
            "{file} is not in word2vec's binary format: its first line must have two numbers over 0, how many words and how many "
            "dimensions; a file in text format must not have the ending .bin",
            file=file,
        )
    return header


def _binary_word(stream: BinaryIO, file: Path, place: int) -> str:
    """The bytes up to the next space. Some programs write a line end before each word, some do not."""
    found = bytearray()
    while (byte := stream.read(1)) != b" ":
        if byte != b"\n":
            found += byte
        require(
            byte != b"" and len(found) <= _LONGEST_WORD,
            "{file}: no word can be read at place {place:,}: the file was cut off, or is not in word2vec's binary format",
            file=file,
            place=place + 1,
        )
    return found.decode("utf-8", errors="replace")
