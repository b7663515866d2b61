"""A corpus as a stream of texts: files, folders and globs of .txt, .jsonl or .parquet, plain or compressed."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unmask import chance
from unmask.errors import Mistake, require

FORMATS = (".txt", ".jsonl", ".parquet")
COMPRESSIONS = (".gz", ".xz", ".zst")
LONGEST_LINE = 256 << 20  # bytes; a longer line cannot be held in bounded memory
LONGEST_TEXT = 1 << 20  # characters; a longer document is cut at a line, a longer line at a space

_TOO_LONG = "documents longer than {:,} characters, cut into parts"
HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Source:
    """Files given by one argument, and the share of their documents to take."""

    files: tuple[Path, ...]
    share: float = 1.0


class Corpus:
    """Documents, read one after the other in bounded memory. `notes` counts what was cut or replaced.

    `whole`: a .txt file is one document, its blank lines kept as they are; what is too long is still cut into parts."""

    def __init__(
        self, arguments: Sequence[str | Path], *, errors: str = "strict", seed: int = 0, whole: bool = False
    ) -> None:
        require(bool(arguments), "no corpus given: name files, folders or globs of " + ", ".join(FORMATS))
        require(errors in ("strict", "replace"), f"errors must be strict or replace, got {errors!r}")
        self.sources = [_source(str(argument)) for argument in arguments]
        self.errors, self.seed, self.whole = errors, seed, whole
        self.notes: Counter[str] = Counter()
        self.bytes_total = sum(file.stat().st_size for source in self.sources for file in source.files)
        self.bytes_done = 0

    def __iter__(self) -> Iterator[str]:
        self.notes.clear()
        self.bytes_done = 0
        found = False
        for number, source in enumerate(self.sources):
            for index, text in enumerate(self._texts(source)):
                if source.share < 1 and _toss(self.seed, number, index) >= source.share:
                    continue
                found = True
                yield from self._cut(text)
        names = [str(file) for source in self.sources for file in source.files]
        verb = "is" if len(names) == 1 else "are"
        require(found, f"the corpus holds no text: {', '.join(names[:3])} {verb} empty or blank")

    def _texts(self, source: Source) -> Iterator[str]:
        for file in source.files:
            before = self.bytes_done
            if suffixes(file)[0] == ".parquet":
                yield from _parquet(file)
            else:
                lines = self._lines(file)
                blocks = _blocks(lines, self.notes, whole=self.whole)
                yield from _jsonl(file, lines) if suffixes(file)[0] == ".jsonl" else blocks
            self.bytes_done = before + file.stat().st_size

    def _lines(self, file: Path) -> Iterator[str]:
        start, size = self.bytes_done, file.stat().st_size
        with file.open("rb") as raw, decompressed(raw, file) as stream:
            offset = 0
            while line := read_line(stream, file, offset):
                yield self._decode(line, file, offset)
                offset += len(line)
                self.bytes_done = start + min(raw.tell(), size)

    def _decode(self, line: bytes, file: Path, offset: int) -> str:
        if offset == 0:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.errors == "replace":
                self.notes["lines with bytes that are not UTF-8, replaced"] += 1
                return line.decode("utf-8", errors="replace")
            raise Mistake(
                f"{file} is not UTF-8: byte 0x{line[error.start]:02x} at offset {offset + error.start:,}; "
                "convert the file; where it is read by `tokenizer`, `prepare` or `lexicon`, --errors replace goes on"
            ) from None

    def _cut(self, text: str) -> Iterator[str]:
        if len(text) <= LONGEST_TEXT:
            yield text
            return
        self.notes[_TOO_LONG.format(LONGEST_TEXT)] += 1
        begin = 0
        while len(text) - begin > LONGEST_TEXT:
            last = begin + LONGEST_TEXT
            end = text.rfind("\n", begin, last) + 1 or text.rfind(" ", begin, last) + 1 or last
            yield text[begin:end]
            begin = end
        if self.whole or text[begin:].strip():
            yield text[begin:]


def _source(argument: str) -> Source:
    path, share = argument, 1.0
    head, colon, tail = argument.rpartition(":")
    if colon and not Path(argument).exists():
        try:
            path, share = head, float(tail)
        except ValueError:
            pass
    require(0 < share <= 1, f"the share of a corpus must be in (0, 1], got {share:g} in {argument!r}")
    return Source(tuple(_files(path)), share)


def _files(argument: str) -> list[Path]:
    path = Path(argument)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and suffixes(file)[0] in FORMATS)
        require(bool(files), f"the folder {path} holds no {', '.join(FORMATS)} file (plain, .gz, .xz or .zst)")
        return files
    files = [path] if path.is_file() else sorted(Path(name) for name in glob.glob(argument, recursive=True))
    require(bool(files), f"no such corpus: {argument} is neither a file, a folder nor a glob that matches")
    for file in files:
        require(
            suffixes(file)[0] in FORMATS,
            f"{file} is of no known format: give {', '.join(FORMATS)}, each also with {', '.join(COMPRESSIONS)}",
        )
    return files


def suffixes(file: Path) -> tuple[str, str]:
    """The format and the compression of a file, by its name."""
    compression = file.suffix if file.suffix in COMPRESSIONS else ""
    return Path(file.stem).suffix if compression else file.suffix, compression


def decompressed(raw: BinaryIO, file: Path) -> Any:
    """The bytes of a file as they were before it was compressed, by its name."""
    compression = suffixes(file)[1]
    if compression == ".gz":
        return gzip.open(raw)
    if compression == ".xz":
        return lzma.open(raw)
    if compression == ".zst":
        return io.BufferedReader(_pyarrow(file).CompressedInputStream(raw, "zstd"))
    return raw


def _pyarrow(file: Path) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise Mistake(f"{file} needs pyarrow: pip install 'unmask[parquet]'") from None
    return pyarrow


def read_line(stream: Any, file: Path, offset: int) -> bytes:
    """The next line of a decompressed file, of which `offset` bytes were read before."""
    try:
        line: bytes = stream.readline(LONGEST_LINE + 1)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise Mistake(
            f"{file} is damaged: its {suffixes(file)[1] or 'data'} stream breaks off after {offset:,} bytes of text "
            f"({error}); fetch or compress the file again"
        ) from None
    require(
        len(line) <= LONGEST_LINE,
        f"{file} has a line of more than {LONGEST_LINE >> 20} MiB at byte {offset:,}: put line breaks into it",
    )
    return line


def _blocks(lines: Iterator[str], notes: Counter[str], *, whole: bool = False) -> Iterator[str]:
    """Documents of a .txt file: separated by blank lines; a file without any, or read as a `whole`, is one document."""
    held: list[str] = []
    size, parts = 0, 0
    for line in lines:
        blank = not whole and not line.strip()
        if held and (blank or size + len(line) > LONGEST_TEXT):
            # a longer document is handed on in parts; a single line that is too long is cut, and counted, later
            parts += not blank
            if parts == 1 and not blank:
                notes[_TOO_LONG.format(LONGEST_TEXT)] += 1
            yield "".join(held)
            held, size = [], 0
        if blank:
            parts = 0
        else:
            held.append(line)
            size += len(line)
    if held:
        yield "".join(held)


def _jsonl(file: Path, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
        except (ValueError, TypeError, KeyError):
            raise Mistake(f'{file}, line {number:,}: not a JSON object with a "text" field') from None
        require(isinstance(text, str), f'{file}, line {number:,}: "text" must be a string, got {text!r:.40}')
        require(
            not HALF.search(text),
            f'{file}, line {number:,}: "text" holds half a character (a lone surrogate): mend it',
        )
        if text.strip():
            yield text


def _parquet(file: Path) -> Iterator[str]:
    arrow = _pyarrow(file)
    import pyarrow.parquet as parquet

    try:
        with file.open("rb") as raw, decompressed(raw, file) as stream:
            table = parquet.ParquetFile(io.BytesIO(stream.read()) if suffixes(file)[1] else file)
    except (arrow.ArrowInvalid, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise Mistake(f"{file} is not a parquet file: {error}") from None
    names = table.schema_arrow.names
    require("text" in names, f'{file} has no column "text"; it has {names}')
    kind = table.schema_arrow.field("text").type
    require(
        arrow.types.is_string(kind) or arrow.types.is_large_string(kind),
        f'{file}: the column "text" must hold strings, it holds {kind}',
    )
    for batch in table.iter_batches(batch_size=256, columns=["text"]):
        yield from (text for text in batch.column(0).to_pylist() if text and text.strip())


def _toss(seed: int, source: int, index: int) -> float:
    return float(chance.uniform(np.array([index]), seed, source, chance.purpose("share of a corpus"))[0])
