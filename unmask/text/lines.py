"""Read a text file line by line, plain or compressed. Each line comes with its number, so that an error can name it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from unmask.errors import require
from unmask.text.documents import decompressed, read_line
from unmask.text.encodings import SAMPLE, undecodable


def numbered_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file, numbered from 1, without line ends and without a byte-order mark."""
    require(file.is_file(), "no such file: {file}", file=file)
    number, offset = 0, 0
    with file.open("rb") as raw, decompressed(raw, file) as stream:
        while line := read_line(stream, file, offset):
            number, offset = number + 1, offset + len(line)
            try:
                text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"line {number:,}, byte 0x{error.object[error.start]:02x}"
                raise undecodable(file, "utf-8", line + stream.read(SAMPLE), where, options=False) from None
            yield number, text.removesuffix("\n").removesuffix("\r")
