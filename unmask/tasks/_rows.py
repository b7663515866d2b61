"""Read the rows of a file of examples: parquet; JSON lines or CSV with a header, plain or compressed (.gz, .xz)."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from unmask.errors import UserError, require
from unmask.text.encodings import SAMPLE, undecodable

GUESSED = 2000  # lines of a CSV file by which its dialect is guessed
LONGEST_FIELD = 1 << 24  # characters in a CSV field
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon"}
ROWS = (".jsonl", ".csv", ".tsv", ".parquet")  # the suffixes of files with rows
SUFFIXES = (*ROWS, ".txt", ".conll", ".json")  # the suffixes of files with examples or texts
DOCUMENT = "-DOCSTART-"  # the word of the lines between documents, in CoNLL columns
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields, for every row, the number of its first line and its values by column."""
    if format_of(path) == ".parquet":
        yield from enumerate(_parquet(path), 1)
        return
    with readable(path) as file:
        yield from _csv(path, file) if is_csv(path) else _jsonl(path, file)


def lines_of_file(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the number and the text of every line of a file, without the line end."""
    with readable(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.rstrip("\r\n")


@contextmanager
def readable(path: Path) -> Iterator[TextIO]:
    """An open file; what is wrong with its bytes is said while it is read."""
    try:
        with open_text(path) as file:
            yield file
    except UnicodeDecodeError as error:
        where = f"byte offset {error.start:,} of a block"
        raise undecodable(path, "utf-8", error.object[:SAMPLE], where, options=False) from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError("{path} is damaged: {error}", path=path, error=error) from None


def open_text(path: Path) -> TextIO:
    require(path.is_file(), "there is no such file: {path}", path=path)
    opened: TextIO = _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", newline="")
    return opened


def is_csv(path: Path) -> bool:
    return format_of(path) in (".csv", ".tsv")


@dataclass(frozen=True)
class Dialect:
    """How the fields of a CSV file are separated and quoted."""

    delimiter: str
    quote: str | None = '"'  # around a field, and not part of it; None: a quote is a character like others
    escaped: bool = False  # a quote inside a quoted field has a backslash before it; otherwise it is written twice

    @property
    def shown(self) -> str:
        inside = ", with \\ before a quote inside" if self.escaped else ""
        quoting = "no quoting" if self.quote is None else f"the quote {self.quote}{inside}"
        return f"the delimiter {DELIMITERS[self.delimiter]} and {quoting}"

    def reader(self, lines: Iterable[str]) -> Any:
        if self.quote is None:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        escape = "\\" if self.escaped else None
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, escapechar=escape, strict=True)


def dialect(path: Path) -> Dialect:
    """The dialect of a CSV file, guessed from its first lines."""
    with readable(path) as file:
        return _dialect(list(islice(file, GUESSED)), path)


def _dialect(lines: list[str], path: Path) -> Dialect:
    """The first way to quote with which all rows have as many fields as the header."""
    mark = _guessed(lines[0] if lines else "", path)
    double = [Dialect(mark), Dialect(mark, escaped=True)]
    single = [Dialect(mark, "'"), Dialect(mark, "'", escaped=True)]
    # an apostrophe may begin a text, so single quotes are quotes only if every row has them
    found = [*(single if _quoted_rows(lines, mark, "'") else double), Dialect(mark, None)]
    return next((one for one in found if _fits(one, lines)), double[0])


def _quoted_rows(lines: list[str], mark: str, quote: str) -> bool:
    """Whether in every line after the header a field begins with a quote, and one ends with it."""
    rows = [line.rstrip("\r\n").split(mark) for line in lines[1:] if line.strip()]
    return bool(rows) and all(
        any(field.startswith(quote) for field in row) and any(field.endswith(quote) for field in row) for row in rows
    )


def _fits(tried: Dialect, lines: list[str]) -> bool:
    """Whether all rows have as many fields as the header. In a long file, the last of these rows may be cut off."""
    counts: list[int] = []
    try:
        counts += (len(fields) for fields in tried.reader(lines) if fields)
    except csv.Error as error:
        if len(lines) < GUESSED or "end of data" not in str(error):
            return False
    return len(set(counts if len(lines) < GUESSED else counts[:-1])) <= 1


def _guessed(header: str, path: Path) -> str:
    """The delimiter that splits the header into the most columns; if two are equal, the one of the file's suffix."""
    usual = "\t" if format_of(path) == ".tsv" else ","
    order = [usual, *(one for one in DELIMITERS if one != usual)]
    return max(order, key=lambda one: len(next(csv.reader([header], delimiter=one), [])))


def has_rows(path: Path) -> bool:
    """Whether a file may have rows with named columns, by its format. A .tsv file with CoNLL columns has none."""
    return path.is_file() and format_of(path) in ROWS and not has_words(path)


def has_words(path: Path) -> bool:
    """Whether a .tsv file has CoNLL columns: a word first and its tag last in each line, and blank lines between sentences."""
    if format_of(path) != ".tsv" or not path.is_file():
        return False
    with readable(path) as file:
        lines = "".join(islice(file, GUESSED)).strip().splitlines()
    rows = [line.split("\t") for line in lines if line.strip() and not line.startswith(DOCUMENT)]
    short = all(len(row) > 1 and len(row[0].split()) == len(row[-1].split()) == 1 for row in rows)
    header = bool(rows) and {"text", "label"} <= {*rows[0]}  # Chinese texts have no spaces either
    return short and not header and any(not line.strip() for line in lines)


def format_of(path: Path) -> str:
    """The suffix of a file without that of its compression."""
    return Path(path.stem).suffix if path.suffix in _OPENERS else path.suffix


def _csv(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(LONGEST_FIELD)
    first = list(islice(file, GUESSED))
    found = _dialect(first, path)
    reader, mark = found.reader(chain(first, file)), found.delimiter
    begins = 1
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_header(path, names)
        begins = reader.line_num + 1
        for fields in reader:
            if fields:
                require(
                    len(fields) <= len(names),
                    (
                        "{path}, line {begins:,}: the row has {count_of_fields} fields, but the header has "
                        "{count_of_names} columns: put quotes around a text that contains a {delimiters}"
                    ),
                    path=path,
                    begins=begins,
                    count_of_fields=len(fields),
                    count_of_names=len(names),
                    delimiters=DELIMITERS[mark],
                )
                yield begins, dict.fromkeys(names) | dict(zip(names, fields, strict=False))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            (
                "{path}, line {begins:,}: {error}: put quotes around a text that contains quotes, and double the "
                'quotes inside it, as in "a ""great"" film"'
            ),
            path=path,
            begins=begins,
            error=error,
        ) from None


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file."""
    require(path.is_file(), "there is no such file: {path}", path=path)
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise UserError(
            "{path} is parquet, and pyarrow is not installed: run pip install 'unmask[parquet]', or give JSON lines or CSV",
            path=path,
        ) from None
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise UserError("{path} is not a parquet file, or is damaged: {error}", path=path, error=error) from None


def described_rows(path: Path) -> str | None:
    """A sentence that says how a CSV file is read, so that the user can check it; None for other files."""
    return f"{path} is read with {dialect(path).shown}" if is_csv(path) else None


def _check_header(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    require(
        not twice,
        "{path}: two columns have the name {twice!r}: rename one of them",
        path=path,
        twice=twice[0] if twice else "",
    )


def _jsonl(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise UserError(
                (
                    "{path}, line {number:,}: this line is not JSON: give JSON lines (.jsonl) or CSV with a header "
                    "(.csv)"
                ),
                path=path,
                number=number,
            ) from None
        require(
            isinstance(row, dict),
            ('{path}, line {number:,}: this line is not a JSON object: write each example as {{"name": value, ...}}'),
            path=path,
            number=number,
        )
        yield number, row
