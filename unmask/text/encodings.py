"""Text encodings: recognise the encoding of a file, and read lines that are not UTF-8."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require

SAMPLE = 1 << 16  # bytes; enough to recognise an encoding

# The most common Chinese characters. A text that is read in a wrong encoding has very few of them.
_COMMON = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事"
    "只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长這國個說們為時過學對後麼沒於還發當無開經頭動長來會裡"
    "，。、：；？！“”（）《》「」"
)
_BOMS = {  # UTF-32 first: its mark begins with the mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8",
}  # fmt: skip
_MULTIBYTE = ("gb18030", "big5", "cp950", "big5hkscs")  # if two score the same, the first is taken
_UTF16 = ("utf-16-le", "utf-16-be")
_FAMILIES = (  # encodings of one family can read most files of each other
    {"gb18030", "gbk", "gb2312"}, {"big5", "cp950", "big5hkscs"}, {"utf-16", "utf-16-le", "utf-16-be"},
    {"utf-32", "utf-32-le", "utf-32-be"},
)  # fmt: skip


def encoding_named(name: str) -> str:
    """The standard name of an encoding, given any of its names. UTF-8 with a byte-order mark counts as UTF-8."""
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    text = found is not None and getattr(found, "_is_text_encoding", True)
    require(
        text,
        ("unknown encoding {name!r}: give utf-8, gb18030, big5, utf-16 or another encoding that Python knows"),
        name=name,
    )
    assert found is not None
    return "utf-8" if found.name == "utf-8-sig" else found.name


def recognised(sample: bytes) -> str | None:
    """The encoding of a text, recognised from its beginning, or from any part if it has no byte-order mark. None: unknown."""
    for bom, name in _BOMS.items():
        if sample.startswith(bom):
            return name
    if b"\0" not in sample and _decoded(sample, "utf-8") is not None:
        return "utf-8"
    scores = {name: _score(sample, name) for name in (*_MULTIBYTE, *_UTF16)}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0.1 else None


def _score(sample: bytes, encoding: str) -> float:
    """The share of characters that are evidence for the encoding: common Chinese ones; for UTF-16 also ASCII."""
    text = _decoded(sample, encoding)
    if text is None:
        return 0.0
    ascii_only = sum(character.isascii() and (character.isprintable() or character.isspace()) for character in text)
    common = sum(character in _COMMON for character in text)
    if encoding in _UTF16:
        return (common + ascii_only) / max(len(text), 1)
    return common / max(len(text) - ascii_only, 1)


def _decoded(sample: bytes, encoding: str) -> str | None:
    """The sample as text, without an incomplete character at its end; None if it does not decode."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return None


def undecodable(
    file: Path, encoding: str, sample: bytes, where: str, *, good: int = 0, options: bool = True
) -> UserError:
    """The error for a line that does not decode. The sample begins with this line; `good` lines before it did decode.

    `options`: whether the command has --encoding and --errors, so that the error may advise them."""
    name = recognised(sample)
    shown = "UTF-8" if encoding == "utf-8" else encoding
    if name is not None and name != encoding:
        convert = f"pass --encoding {name}" if options else f"convert it: iconv -f {name} -t utf-8 {file} > NEW_FILE"
        advice = "leave --encoding out" if name == "utf-8" else convert
        return UserError(
            "{file} is not {shown}: it looks like {upper}; {advice}",
            file=file,
            shown=shown,
            upper=name.upper(),
            advice=advice,
        )
    lines = sample.split(b"\n")[:-1] or [sample]
    bad = sum(_decoded(line, encoding) is None for line in lines)
    advice = "pass its --encoding" if options else "convert the file"
    if options and 2 * bad <= good + len(lines):
        advice += "; if only a few characters are damaged, pass --errors replace to `tokenizer`, `prepare` or `lexicon`"
    return UserError("{file} is not {shown}: {where}; {advice}", file=file, shown=shown, where=where, advice=advice)


def fitting(file: Path, sample: bytes, encoding: str) -> str:
    """The encoding to read a file with, given its beginning; for UTF-16, with the byte order of the file.

    A file that clearly has another encoding is refused: it might be read without an error, but as nonsense."""
    found = recognised(sample)
    family = next((names for names in _FAMILIES if encoding in names), {encoding})
    if found is None or found in family or (found == "utf-8" and sample.isascii()):
        return found if encoding == "utf-16" and found in _UTF16 else encoding
    raise undecodable(file, encoding, sample, "")


def is_wide(encoding: str) -> bool:
    """Whether a character takes two bytes or more. Then the byte of a line feed may be part of another character."""
    return "\n".encode(encoding) != b"\n"


def wide_lines(stream: Any, file: Path, encoding: str, errors: str) -> Iterator[str]:
    """The lines of a decompressed file, without a byte-order mark. Only a line feed ends a line."""
    wrapped = io.TextIOWrapper(stream, encoding, errors, newline="\n")
    number = 1
    try:
        while line := wrapped.readline():
            yield line.removeprefix("\ufeff") if number == 1 else line
            number += 1
    except UnicodeDecodeError as error:
        where = f"near line {number:,}"
        raise undecodable(file, encoding, error.object[error.start :], where, good=number) from None
    finally:
        wrapped.detach()  # the caller opened the stream and closes it
