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
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from unmask import chance
from unmask.errors import UserError, require
from unmask.text.encodings import SAMPLE, encoding_named, fitting, is_wide, recognised, undecodable, wide_lines

if TYPE_CHECKING:
    from unmask.text.links import Mention

FORMATS = (".txt", ".jsonl", ".parquet")
COMPRESSIONS = (".gz", ".xz", ".zst")
LONGEST_LINE = 256 << 20  # bytes; the limit keeps memory bounded
LONGEST_TEXT = 1 << 20  # characters; a longer document is cut at a line end, a longer line at a space

_TOO_LONG = "documents longer than {:,} characters, cut into parts"
_PAIR_TOO_LONG = "pairs longer than {:,} characters, left out"
_EMPTY_SIDE = "pairs with an empty source or target, left out"
NO_BLANK_LINE = (
    "files without a blank line, each read as one document: if every line is a document, pass --lines; otherwise put a "
    "blank line between documents"
)
_BEGINNING = 1 << 12  # characters of each file that are checked before the work starts
_BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error)  # errors from reading a damaged file
HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate: half a character


@dataclass(frozen=True)
class Source:
    """Files given by one argument, and the share of their documents to take."""

    files: tuple[Path, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Line:
    """A line of a .jsonl file."""

    values: dict[str, Any]
    where: str  # its name in error messages


class Corpus:
    """The documents of some files, read one by one in bounded memory. `notes` counts what was cut or replaced.

    `whole`: a .txt file is one document and keeps its blank lines; a file that is too long is still cut into parts.
    `lines`: every line of a .txt file is a document. JSON lines with `source` and `target` are a corpus of `pairs`: each
    document is two lines, the source and the target."""

    def __init__(
        self, arguments: Sequence[str | Path], *, errors: str = "strict", encoding: str = "utf-8", seed: int = 0,
        whole: bool = False, lines: bool = False,
    ) -> None:  # fmt: skip
        require(bool(arguments), "no corpus given: name files, folders or globs of " + ", ".join(FORMATS))
        require(errors in ("strict", "replace"), "errors must be strict or replace, got {errors!r}", errors=errors)
        require(
            not (whole and lines),
            "--whole makes a .txt file one document, --lines makes each line a document: give one of them",
        )
        self.errors, self.encoding, self.seed = errors, encoding_named(encoding), seed
        self.whole, self.lines = whole, lines
        self.sources = [source_of(str(argument)) for argument in arguments]
        self.notes: Counter[str] = Counter()
        self.bytes_total = sum(file.stat().st_size for source in self.sources for file in source.files)
        self.bytes_done = 0
        self.pairs = self._has_pairs()
        self._check()

    def _has_pairs(self) -> bool:
        """Whether the files hold pairs. Files of pairs and other files are not read together."""
        kinds = {file: self._first_has_pair(file) for source in self.sources for file in source.files}
        if len(set(kinds.values())) > 1:
            raise UserError(
                '{one} has "source" and "target", but {other} has not: give files of pairs, or files of texts',
                one=next(file for file, pairs in kinds.items() if pairs),
                other=next(file for file, pairs in kinds.items() if not pairs),
            )
        return any(kinds.values())

    def _first_has_pair(self, file: Path) -> bool:
        if suffixes(file)[0] != ".jsonl":
            return False
        try:
            first = json.loads(next((line for line in self._lines(file) if line.strip()), "null"))
        except ValueError:
            return False  # the line is refused when the file is read
        return isinstance(first, dict) and "text" not in first and {"source", "target"} <= first.keys()

    def _check(self) -> None:
        """Read the beginning of every file, so that an error comes now and not after hours of work on other files."""
        files = [file for source in self.sources for file in source.files]
        formats = {suffixes(file)[0] for file in files}
        require(
            not self.lines or ".txt" in formats, "--lines is for .txt files, but the corpus has none: leave --lines out"
        )
        require(
            not (self.pairs and self.whole),
            "--whole is for .txt files, but the corpus holds pairs of a source and a target: leave --whole out",
        )
        for file in files:
            if suffixes(file)[0] == ".parquet":
                _pyarrow(file)
            else:
                sizes = accumulate(map(len, self._lines(file)))
                next((size for size in sizes if size > _BEGINNING), None)

    def __iter__(self) -> Iterator[str]:
        return (text for text, _ in self._parts())

    def with_mentions(self, field: str) -> Iterator[tuple[str, tuple[Mention, ...] | None]]:
        """Each document with the mentions that its JSON line brings; None: it brings none. `field`: the name of their id."""
        from unmask.text.links import mentions_of  # it imports this file

        for text, (begin, line) in self._parts():
            if line is None or "mentions" not in line.values:
                yield text, None
                continue
            given = mentions_of(line.values["mentions"], line.values["text"], field, line.where)
            without = len(line.values["mentions"]) - len(given) if begin == 0 else 0  # once for each line
            if without:
                self.notes[f'mentions without "{field}", left out: --mention-id names the field of their id'] += without
            inside = [m for m in given if begin <= m.start and m.end <= begin + len(text)]
            yield text, tuple(replace(m, start=m.start - begin, end=m.end - begin) for m in inside)

    def _parts(self) -> Iterator[tuple[str, tuple[int, Line | None]]]:
        """Each document, or each part of a long one, with where it begins and the JSON line that it is from."""
        self.notes.clear()
        self.bytes_done = 0
        found = False
        for number, source in enumerate(self.sources):
            for index, (text, line) in enumerate(self._texts(source)):
                if source.share < 1 and _drawn(self.seed, number, index) >= source.share:
                    continue
                found = True
                for begin, part in self._cut(text):
                    yield part, (begin, line)
        names = [str(file) for source in self.sources for file in source.files]
        left_out = "; ".join(f"{count:,} {note}" for note, count in self.notes.items())
        require(
            found,
            "the corpus holds no text: {why}",
            why=(self.pairs and left_out)
            or f"{', '.join(names[:3])} {'is' if len(names) == 1 else 'are'} empty or blank",
        )

    def chunks(self, size: int) -> Iterator[list[str]]:
        """The documents in groups of about `size` characters: as much as is read, or sent to a worker, at a time."""
        chunk: list[str] = []
        held = 0
        for text in self:
            chunk.append(text)
            held += len(text)
            if held >= size:
                yield chunk
                chunk, held = [], 0
        if chunk:
            yield chunk

    def _texts(self, source: Source) -> Iterator[tuple[str, Line | None]]:
        for file in source.files:
            before = self.bytes_done
            if suffixes(file)[0] == ".jsonl":
                yield from self._jsonl(file)
            else:
                read = _parquet(file) if suffixes(file)[0] == ".parquet" else self._documents(self._lines(file))
                yield from ((text, None) for text in read)
            self.bytes_done = before + file.stat().st_size

    def _jsonl(self, file: Path) -> Iterator[tuple[str, Line | None]]:
        if not self.pairs:
            for line in _fields(file, self._lines(file), "text"):
                if line.values["text"].strip():
                    yield line.values["text"], line
            return
        for line in _fields(file, self._lines(file), "source", "target"):
            sides = [" ".join(line.values[name].split()) for name in ("source", "target")]
            text = "\n".join(sides)
            if not all(sides):
                named = next((note for note in self.notes if note.startswith(_EMPTY_SIDE)), None)
                self.notes[named or f"{_EMPTY_SIDE}; the first is {line.where}"] += 1
            elif len(text) > LONGEST_TEXT:
                self.notes[_PAIR_TOO_LONG.format(LONGEST_TEXT)] += 1
            else:
                yield text, line

    def _documents(self, lines: Iterator[str]) -> Iterator[str]:
        if self.lines:
            return (line for line in lines if line.strip())
        return _blocks(lines, self.notes, whole=self.whole)

    def _lines(self, file: Path) -> Iterator[str]:
        start, size = self.bytes_done, file.stat().st_size
        with file.open("rb") as raw, decompressed(raw, file) as stream:
            encoding = self._encoding(stream, file)
            read = self._wide if is_wide(encoding) else self._decoded
            for line in read(stream, file, encoding):
                yield line
                self.bytes_done = start + min(raw.tell(), size)

    def _encoding(self, stream: Any, file: Path) -> str:
        if self.encoding == "utf-8":
            return self.encoding
        try:
            return fitting(file, stream.peek(SAMPLE), self.encoding)
        except _BROKEN as error:
            raise _damaged(file, 0, error) from None

    def _decoded(self, stream: Any, file: Path, encoding: str) -> Iterator[str]:
        offset = number = 0
        while line := read_line(stream, file, offset):
            if offset == 0 and b"\0" in line and (recognised(line) or "").startswith("utf-16"):
                raise undecodable(file, encoding, line, "it has zero bytes")  # valid UTF-8, but not text
            try:
                yield line.removeprefix(codecs.BOM_UTF8 if offset == 0 else b"").decode(encoding)
            except UnicodeDecodeError as error:
                if self.errors == "strict":
                    where = f"byte 0x{error.object[error.start]:02x} at offset {offset + error.start:,}"
                    raise undecodable(file, encoding, line + stream.read(SAMPLE), where, good=number) from None
                self._replaced(encoding)
                yield line.decode(encoding, errors="replace")
            offset, number = offset + len(line), number + 1

    def _wide(self, stream: Any, file: Path, encoding: str) -> Iterator[str]:
        size = 0
        try:
            for line in wide_lines(stream, file, encoding, self.errors):
                if self.errors == "replace" and "\ufffd" in line:
                    self._replaced(encoding)
                yield line
                size += len(line.encode(encoding, errors="replace"))
        except _BROKEN as error:
            raise _damaged(file, size, error) from None

    def _replaced(self, encoding: str) -> None:
        shown = "UTF-8" if encoding == "utf-8" else encoding
        self.notes[f"lines with bytes that are not {shown}, replaced"] += 1

    def _cut(self, text: str) -> Iterator[tuple[int, str]]:
        """The parts of a text, with where each begins."""
        if len(text) <= LONGEST_TEXT:
            yield 0, text
            return
        self.notes[_TOO_LONG.format(LONGEST_TEXT)] += 1
        begin = 0
        while len(text) - begin > LONGEST_TEXT:
            last = begin + LONGEST_TEXT
            end = text.rfind("\n", begin, last) + 1 or text.rfind(" ", begin, last) + 1 or last
            yield begin, text[begin:end]
            begin = end
        if self.whole or text[begin:].strip():
            yield begin, text[begin:]


def source_of(argument: str) -> Source:
    """The files that an argument names, such as a folder, a glob, or PATH:0.3 for 30% of its documents."""
    path, share = argument, 1.0
    head, colon, tail = argument.rpartition(":")
    if colon and not Path(argument).exists():
        try:
            path, share = head, float(tail)
        except ValueError:
            pass
    require(
        0 < share <= 1,
        "the share of a corpus must be in (0, 1], got {share:g} in {argument!r}",
        share=share,
        argument=argument,
    )
    return Source(tuple(_files(path)), share)


def _files(argument: str) -> list[Path]:
    path = Path(argument)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and suffixes(file)[0] in FORMATS)
        require(
            bool(files),
            "the folder {path} holds no {formats} file (plain, .gz, .xz or .zst)",
            path=path,
            formats=", ".join(FORMATS),
        )
        return files
    files = [path] if path.is_file() else sorted(Path(name) for name in glob.glob(argument, recursive=True))
    require(
        bool(files),
        ("no such corpus: {argument} is not a file, not a folder, and not a glob that matches a file"),
        argument=argument,
    )
    for file in files:
        require(
            suffixes(file)[0] in FORMATS,
            "{file} has an unknown format: give {formats}, plain or compressed ({compressions})",
            file=file,
            formats=", ".join(FORMATS),
            compressions=", ".join(COMPRESSIONS),
        )
    return files


def suffixes(file: Path) -> tuple[str, str]:
    """The format and the compression of a file, from its name."""
    compression = file.suffix if file.suffix in COMPRESSIONS else ""
    return Path(file.stem).suffix if compression else file.suffix, compression


def decompressed(raw: BinaryIO, file: Path) -> Any:
    """A stream of the decompressed bytes of a file. The name of the file gives the compression."""
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
        raise UserError("{file} needs pyarrow: pip install 'unmask[parquet]'", file=file) from None
    return pyarrow


def read_line(stream: Any, file: Path, offset: int) -> bytes:
    """The next line of a decompressed file; `offset`: the number of bytes read so far."""
    try:
        line: bytes = stream.readline(LONGEST_LINE + 1)
    except _BROKEN as error:
        raise _damaged(file, offset, error) from None
    require(
        len(line) <= LONGEST_LINE,
        "{file} has a line of more than {longest_line} MiB at byte {offset:,}: add line breaks",
        file=file,
        longest_line=LONGEST_LINE >> 20,
        offset=offset,
    )
    return line


def _damaged(file: Path, offset: int, error: Exception) -> UserError:
    return UserError(
        (
            "{file} is damaged: its {suffixes} stream ends too early, after {offset:,} bytes of text ({error}): "
            "download or compress the file again"
        ),
        file=file,
        suffixes=suffixes(file)[1] or "data",
        offset=offset,
        error=error,
    )


def _blocks(lines: Iterator[str], notes: Counter[str], *, whole: bool = False) -> Iterator[str]:
    """Documents of a .txt file: blank lines separate them. Without blank lines, or with `whole`, the file is one document."""
    held: list[str] = []
    size, parts, filled, blanks = 0, 0, 0, 0
    for line in lines:
        blank = not whole and not line.strip()
        if held and (blank or size + len(line) > LONGEST_TEXT):
            # a document that is too long is yielded in parts; a single line that is too long is cut and counted in `_cut`
            parts += not blank
            if parts == 1 and not blank:
                notes[_TOO_LONG.format(LONGEST_TEXT)] += 1
            yield "".join(held)
            held, size = [], 0
        if blank:
            parts, blanks = 0, blanks + 1
        else:
            held.append(line)
            size, filled = size + len(line), filled + 1
    if held:
        yield "".join(held)
    if filled > 1 and not blanks and not whole:
        notes[NO_BLANK_LINE] += 1


def _fields(file: Path, lines: Iterator[str], *names: str) -> Iterator[Line]:
    """The JSON lines of a file, which must have texts in these fields. Blank lines are left out."""
    needed = " and ".join(f'"{name}"' for name in names)
    fields = "a field" if len(names) == 1 else "the fields"
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file}, line {number:,}"
        try:
            values = json.loads(line)
            texts = [values[name] for name in names]
        except (ValueError, TypeError, KeyError):
            raise UserError(
                "{where}: this line is not a JSON object with {fields} {needed}",
                where=where,
                fields=fields,
                needed=needed,
            ) from None
        for name, text in zip(names, texts, strict=True):
            require(
                isinstance(text, str),
                '{where}: "{name}" must be a string, got {text!r:.40}',
                where=where,
                name=name,
                text=text,
            )
            require(
                not HALF.search(text),
                '{where}: "{name}" holds a lone surrogate (half a character): remove it',
                where=where,
                name=name,
            )
        yield Line(values, where)


def _parquet(file: Path) -> Iterator[str]:
    arrow = _pyarrow(file)
    import pyarrow.parquet as parquet

    try:
        with file.open("rb") as raw, decompressed(raw, file) as stream:
            table = parquet.ParquetFile(io.BytesIO(stream.read()) if suffixes(file)[1] else file)
    except (arrow.ArrowInvalid, *_BROKEN) as error:
        raise UserError("{file} is not a parquet file: {error}", file=file, error=error) from None
    names = table.schema_arrow.names
    require(
        "text" in names,
        ('{file} has no column "text", it has {names}: rename the column that holds the text'),
        file=file,
        names=names,
    )
    kind = table.schema_arrow.field("text").type
    require(
        arrow.types.is_string(kind) or arrow.types.is_large_string(kind),
        '{file}: the column "text" must hold strings, but it holds {kind}',
        file=file,
        kind=kind,
    )
    for batch in table.iter_batches(batch_size=256, columns=["text"]):
        yield from (text for text in batch.column(0).to_pylist() if text and text.strip())


def _drawn(seed: int, source: int, index: int) -> float:
    return float(chance.uniform(np.array([index]), seed, source, chance.purpose("share of a corpus"))[0])
