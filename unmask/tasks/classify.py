"""Classify: one text or two, one label. JSON lines or CSV with `text` or `text_a`, `text_b`, and `label`."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unmask.data.given import Text
from unmask.errors import Mistake, require
from unmask.recipe import Part
from unmask.tasks._training import CURVE, Training, check_dropout, check_language
from unmask.text.encodings import SAMPLE, undecodable

LONGEST_FIELD = 1 << 24  # characters of a CSV field


@dataclass(frozen=True)
class Classify(Training):
    """How a model is adapted to classification."""

    dropout: float = 0.1  # before the output
    pool: Literal["summary", "mean"] = "summary"  # the summary token, or the mean of all tokens
    activation: Literal["tanh", "gelu"] | None = None  # of the layer before the output; none: the recipe's
    orders: Literal["one", "both"] = "one"  # both: a pair is read in both orders, and what is read added up (GPT)
    language: float | Part | None = field(  # weight of predicting the next token beside the label; none: the recipe's
        default=None, metadata=CURVE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        check_language(self.language)


@dataclass(frozen=True)
class Example:
    text: Text
    label: str | None  # None where the file has none


def read(path: str | Path, *, labelled: bool = True) -> list[Example]:
    """The examples of a file; with `labelled`, every one must have a label."""
    path = Path(path)
    require(path.is_file(), f"no such file: {path}")
    examples = []
    for number, row in read_rows(path):
        where = f"{path}, line {number:,}"
        pair = "text_a" in row
        require(pair or "text" in row, f'{where}: needs "text", or "text_a" and "text_b"; got {sorted(row)}')
        require(not pair or "text_b" in row, f'{where}: has "text_a" and no "text_b"')
        label = row.get("label")
        require(not labelled or label not in (None, ""), f'{where}: has no "label"')
        texts = [row[name] for name in (("text_a", "text_b") if pair else ("text",))]
        require(
            all(isinstance(text, str) and text.strip() for text in texts), f"{where}: the text is empty or no string"
        )
        examples.append(Example(Text(*texts), None if label is None else str(label)))
    require(bool(examples), f"{path} holds no examples")
    kinds = {example.text.b is None for example in examples}
    require(
        len(kinds) == 1,
        f'{path} mixes examples of one text and of two: give all of them "text", or all "text_a" and "text_b"',
    )
    return examples


def read_texts(path: str | Path) -> tuple[list[Text], Counter[str]]:
    """Texts without labels: the lines of a .txt, or the texts of JSON lines or CSV; the notes count blank lines."""
    path = Path(path)
    if path.suffix != ".txt":
        return [example.text for example in read(path, labelled=False)], Counter()
    require(path.is_file(), f"no such file: {path}")
    try:  # splitlines would part at form feeds too, and a text would not be a line of the file
        lines = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        where = f"byte offset {error.start:,}"
        raise undecodable(path, "utf-8", error.object[:SAMPLE], where, options=False) from None
    texts = [Text(line) for line in lines if line.strip()]
    require(bool(texts), f"{path} holds no text")
    return texts, _blank([number for number, line in enumerate(lines, 1) if not line.strip()])


def _blank(numbers: Sequence[int]) -> Counter[str]:
    """What is to be told of the blank lines with these numbers: after one, text and line differ in number."""
    if not numbers:
        return Counter()
    several = f"blank lines left out (the first is line {numbers[0]:,})"
    return Counter({several if len(numbers) > 1 else f"blank line left out (line {numbers[0]:,})": len(numbers)})


def label_names(examples: Sequence[Example]) -> tuple[str, ...]:
    """The classes of the training examples, sorted: numbers by value, words by name."""
    names = {example.label for example in examples if example.label is not None}
    require(len(names) >= 2, f"a classifier needs two labels or more, the examples have {sorted(names)}")
    numbers = all(name.lstrip("-").isdigit() for name in names)
    return tuple(sorted(names, key=(lambda n: (int(n), n)) if numbers else (lambda n: (0, n))))


def label_numbers(examples: Sequence[Example], names: Sequence[str], file: str | Path) -> list[int]:
    """The number of each example's label; one that training never had is an error."""
    known = {name: number for number, name in enumerate(names)}
    strange = sorted({str(e.label) for e in examples} - set(known))
    require(
        not strange,
        f"{file} has labels that the training examples never had: {strange[:5]}; known are {list(names)[:20]}",
    )
    return [known[str(example.label)] for example in examples]


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    name = path.name.removesuffix(path.suffix) if path.suffix in openers else path.name
    try:
        with openers.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            if name.endswith((".csv", ".tsv")):
                yield from _csv(path, file, "\t" if name.endswith(".tsv") else ",")
            else:
                yield from _jsonl(path, file)
    except UnicodeDecodeError as error:
        where = f"byte offset {error.start:,} of a block"
        raise undecodable(path, "utf-8", error.object[:SAMPLE], where, options=False) from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise Mistake(f"{path} is damaged: {error}") from None


def _csv(path: Path, file: Any, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(LONGEST_FIELD)
    for number, row in enumerate(csv.DictReader(file, delimiter=delimiter), 2):
        require(
            None not in row,
            f"{path}, line {number:,}: more fields than the header names; put quotes around a text that holds {delimiter!r}",
        )
        yield number, row


def _jsonl(path: Path, file: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise Mistake(
                f"{path}, line {number:,}: not JSON; give JSON lines (.jsonl) or CSV with a header (.csv)"
            ) from None
        require(isinstance(row, dict), f"{path}, line {number:,}: not a JSON object")
        yield number, row
