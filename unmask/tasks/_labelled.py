"""Labelled texts in files: JSON lines or CSV with `text` or `text_a`, `text_b`, and `label`, or other columns; plain lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask import chance
from unmask.data.examples import Text
from unmask.errors import UserError, require
from unmask.tasks._rows import DELIMITERS, delimiter, is_csv, read_rows
from unmask.text.encodings import SAMPLE, undecodable


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are read."""

    text: tuple[str, ...] = ()  # one, or two for a pair; none: "text", or "text_a" and "text_b"
    label: str = "label"

    def __post_init__(self) -> None:
        require(
            len(self.text) <= 2, f"an example has one text or two, got {len(self.text)} columns: {', '.join(self.text)}"
        )

    @classmethod
    def of(cls, text: str | Sequence[str] | None = None, label: str | None = None) -> Columns:
        """From what a user names, if anything."""
        texts = () if text is None else (text,) if isinstance(text, str) else tuple(text)
        return cls(texts, label or cls.label)

    def texts_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The columns of a row's texts."""
        return self.text or (("text_a", "text_b") if "text_a" in row else ("text",))


@dataclass(frozen=True)
class Example:
    """A text or a pair of texts, and its label."""

    text: Text
    label: str | None  # None where it is not read
    where: str = field(default="", compare=False)  # file and line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all of its columns

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.text.a,) if self.text.b is None else (self.text.a, self.text.b)


def fixed(columns: Columns | None, verb: str) -> None:
    """Refuse named columns for a task whose columns have fixed names. `verb`: what its models do."""
    require(
        columns in (None, Columns()),
        f"columns are named for labels (--task classify), and this is a task to {verb}: leave --text and --label out, and "
        "name the fields of the file as docs/adapt.md says",
    )


def read(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> list[Example]:
    """The examples of a file. With `labelled`, every one must have a label; otherwise labels are not read."""
    path, columns = Path(path), columns or Columns()
    examples = []
    for number, row in read_rows(path):
        where = f"{path}, line {number:,}"
        text = _text(row, columns, where)
        label = _label(row, columns, where, quoted=not is_csv(path)) if labelled else None
        examples.append(Example(text, label, where, row))
    require(bool(examples), f"{path} holds no examples")
    kinds = {example.text.b is None for example in examples}
    require(
        len(kinds) == 1,
        f'{path} mixes examples of one text and of two: give all of them "text", or all "text_a" and "text_b"',
    )
    return examples


def _text(row: Mapping[str, Any], columns: Columns, where: str) -> Text:
    names = columns.texts_of(row)
    known = f"the columns are {', '.join(map(repr, row)) or 'none'}"
    if not columns.text:
        require(
            names != ("text",) or "text" in row,
            f'{where}: needs "text", or "text_a" and "text_b"; {known}: name the column to read with --text NAME',
        )
        require(
            names == ("text",) or "text_b" in row,
            f'{where}: has "text_a" and no "text_b"; {known}: name both columns with --text NAME --text NAME',
        )
    for name in names:
        require(name in row, f"{where}: no column {name!r}; {known}")
        value = row[name]
        require(
            isinstance(value, str) and bool(value.strip()),
            f"{where}: the text is empty or no string: {name!r} is {value!r:.60}",
        )
    return Text(*(row[name] for name in names))


def _label(row: Mapping[str, Any], columns: Columns, where: str, *, quoted: bool) -> str:
    """The label of a row: a word or a whole number. `quoted`: the file tells numbers and words apart."""
    name, value = columns.label, row.get(columns.label)
    known = (
        ""
        if name in row
        else f"; the columns are {', '.join(map(repr, row))}: name that of the label with --label NAME"
    )
    require(value not in (None, ""), f'{where}: has no "{name}"{known}')
    require(
        not isinstance(value, list | dict),
        f"{where}: the label is a {'list' if isinstance(value, list) else 'dict'}, {value!r:.60}: an example has one label, "
        "a word or a whole number",
    )
    text = str(value)
    if isinstance(value, float) or (not quoted and _FRACTION.fullmatch(text.strip())):
        raise UserError(f"{where}: {_of_fraction(text.strip(), name)}")
    require(text == text.strip(), f"{where}: the label {text!r} has blanks around it: remove them, in the whole file")
    return text


_FRACTION = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?")


def _of_fraction(text: str, name: str) -> str:
    """What to say of a label that is a number with a fraction."""
    number = float(text)
    if number.is_integer():
        return (
            f"the label {text} is a class written with a fraction, as pandas does where labels are missing: drop the rows "
            f"without a label and write {int(number)} (df[{name!r}].astype(int))"
        )
    return (
        f"the label {text} is a number with a fraction, not a class: turn numbers into classes first, for example low and "
        f'high; if it is the name of a class, write it in quotes in JSON lines: "{text}"'
    )


def described(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> str | None:
    """How a CSV file is read, for a user to check; None for other files."""
    path, columns = Path(path), columns or Columns()
    if not is_csv(path):
        return None
    _, row = next(read_rows(path), (0, {}))
    texts = " and ".join(map(repr, columns.texts_of(row)))
    label = f", label from {columns.label!r}" if labelled else ""
    return f"{path} is read with the delimiter {DELIMITERS[delimiter(path)]}: text from {texts}{label}"


def read_texts(path: str | Path, columns: Columns | None = None) -> tuple[list[Text], Counter[str]]:
    """Texts without labels: the lines of a .txt, or the texts of JSON lines or CSV; the notes count blank lines."""
    examples, notes = read_unlabelled(path, columns)
    return [example.text for example in examples], notes


def read_unlabelled(path: str | Path, columns: Columns | None = None) -> tuple[list[Example], Counter[str]]:
    """The same with all columns of each text."""
    path = Path(path)
    if path.suffix != ".txt":
        return read(path, columns, labelled=False), Counter()
    require(columns in (None, Columns()), f"{path} is plain text without columns: leave --text out")
    require(path.is_file(), f"no such file: {path}")
    try:
        return lines_of(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        where = f"byte offset {error.start:,}"
        raise undecodable(path, "utf-8", error.object[:SAMPLE], where, options=False) from None


def lines_of(content: str, name: str) -> tuple[list[Example], Counter[str]]:
    """Every line as a text; the notes count the blank ones, which are left out."""
    # splitlines would split at form feeds too, and a text would not be a line of the file
    lines = list(enumerate(content.removesuffix("\n").split("\n"), 1))
    found = [Example(Text(line), None, f"{name}, line {i:,}", {"text": line}) for i, line in lines if line.strip()]
    require(bool(found), f"{name} holds no text")
    return found, _blank([i for i, line in lines if not line.strip()])


def _blank(numbers: Sequence[int]) -> Counter[str]:
    """The note about the blank lines with these numbers: after one, text and line differ in number."""
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
    strange = next((e for e in examples if e.label not in known), None)
    if strange is not None:
        raise UserError(
            f"{strange.where or file}: the label {strange.label!r} is one that the training examples never had; known are "
            f"{list(names)[:20]}"
        )
    return [known[str(example.label)] for example in examples]


def few(examples: Sequence[Example], per_label: int, seed: int) -> list[Example]:
    """This number of examples of each label, drawn at random."""
    chosen: list[Example] = []
    rng = chance.generator(seed, chance.purpose("few labels"))
    for name in label_names(examples):
        mine = [e for e in examples if e.label == name]
        require(len(mine) >= per_label, f"label {name!r} has {len(mine)} examples, {per_label} were asked for")
        chosen += [mine[i] for i in sorted(rng.choice(len(mine), per_label, replace=False).tolist())]
    return chosen
