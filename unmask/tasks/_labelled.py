"""Read labelled texts from files: JSON lines or CSV with the columns `text` (or `text_a` and `text_b`) and `label`.

The user can name other columns. Texts without labels may also be the lines of a plain text file."""

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
from unmask.tasks._rows import described_rows, is_csv, read_rows
from unmask.text.encodings import SAMPLE, undecodable


@dataclass(frozen=True)
class Columns:
    """The columns of a file that hold the texts and the label."""

    text: tuple[str, ...] = ()  # one column, or two for a pair; empty: "text", or "text_a" and "text_b"
    label: str = "label"  # the column of the label

    def __post_init__(self) -> None:
        require(
            len(self.text) <= 2,
            "an example has one or two texts, got {count_of_text} columns: {text}; name one or two",
            count_of_text=len(self.text),
            text=", ".join(self.text),
        )

    @classmethod
    def of(cls, text: str | Sequence[str] | None = None, label: str | None = None) -> Columns:
        """The columns that the user names; the default names where the user names none."""
        texts = () if text is None else (text,) if isinstance(text, str) else tuple(text)
        return cls(texts, label or cls.label)

    def texts_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the columns that hold the texts of this row."""
        return self.text or (("text_a", "text_b") if "text_a" in row else ("text",))


@dataclass(frozen=True)
class Example:
    """A text or a pair of texts, and its label."""

    text: Text
    label: str | None  # None if labels are not read
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.text.a,) if self.text.b is None else (self.text.a, self.text.b)


def fixed(columns: Columns | None, verb: str) -> None:
    """Refuse columns that the user names if the task has fixed column names. `verb` says what models of the task do."""
    require(
        columns in (None, Columns()),
        (
            "--text and --label name the columns of --task classify, but this is a task to {verb}: leave --text "
            "and --label out, and use the column names that docs/adapt.md lists for this task"
        ),
        verb=verb,
    )


def read(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> list[Example]:
    """The examples of a file. With `labelled`, every example must have a label; otherwise labels are not read."""
    path, columns = Path(path), columns or Columns()
    examples = []
    for number, row in read_rows(path):
        where = f"{path}, line {number:,}"
        text = _text(row, columns, where)
        label = _label(row, columns, where, quoted=not is_csv(path)) if labelled else None
        examples.append(Example(text, label, where, row))
    require(bool(examples), "{path} holds no examples: give a file with at least one example", path=path)
    kinds = {example.text.b is None for example in examples}
    require(
        len(kinds) == 1,
        (
            '{path} mixes examples with one text and examples with two: give every example "text", or give every '
            'example "text_a" and "text_b"'
        ),
        path=path,
    )
    return examples


def _text(row: Mapping[str, Any], columns: Columns, where: str) -> Text:
    names = columns.texts_of(row)
    known = f"the columns are {', '.join(map(repr, row)) or 'none'}"
    if not columns.text:
        require(
            names != ("text",) or "text" in row,
            (
                '{where}: an example needs "text", or "text_a" and "text_b"; {known}: name the column to read with '
                "--text NAME"
            ),
            where=where,
            known=known,
        )
        require(
            names == ("text",) or "text_b" in row,
            (
                '{where}: the example has "text_a" but no "text_b"; {known}: name both columns with --text NAME '
                "--text NAME"
            ),
            where=where,
            known=known,
        )
    for name in names:
        require(name in row, "{where}: there is no column {name!r}; {known}", where=where, name=name, known=known)
        value = row[name]
        require(
            isinstance(value, str) and bool(value.strip()),
            "{where}: the text is empty or not a string: {name!r} is {value!r:.60}",
            where=where,
            name=name,
            value=value,
        )
    return Text(*(row[name] for name in names))


def _label(row: Mapping[str, Any], columns: Columns, where: str, *, quoted: bool) -> str:
    """The label of a row: a word or a whole number. `quoted`: the file format distinguishes numbers from strings."""
    name, value = columns.label, row.get(columns.label)
    known = (
        ""
        if name in row
        else f"; the columns are {', '.join(map(repr, row))}: name the column of the label with --label NAME"
    )
    require(value not in (None, ""), '{where}: the example has no "{name}"{known}', where=where, name=name, known=known)
    require(
        not isinstance(value, list | dict),
        ("{where}: the label is a {isinstance}, {value!r:.60}: an example has one label, a word or a whole number"),
        where=where,
        isinstance="list" if isinstance(value, list) else "dict",
        value=value,
    )
    text = str(value)
    if isinstance(value, float) or (not quoted and _FRACTION.fullmatch(text.strip())):
        raise UserError("{where}: {of_fraction}", where=where, of_fraction=_of_fraction(text.strip(), name))
    require(
        text == text.strip(),
        ("{where}: the label {text!r} has spaces around it: remove them in the whole file"),
        where=where,
        text=text,
    )
    return text


_FRACTION = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?")


def _of_fraction(text: str, name: str) -> str:
    """The error message for a label that is a number with a decimal point."""
    number = float(text)
    if number.is_integer():
        return (
            f"the label {text} is a class number with a decimal point; pandas writes this if some labels are missing: drop "
            f"the rows without a label and write {int(number)} (df[{name!r}].astype(int))"
        )
    return (
        f"the label {text} is a number with a decimal point, not a class: learn the number itself with --task number, or turn "
        f'numbers into classes first, for example low and high; if it is the name of a class, write it in quotes in JSON lines: "{text}"'
    )


def all_fractions(path: Path, columns: Columns | None) -> bool:
    """Whether the labels of a file are numbers: all of them have a decimal point, and one is not a whole number."""
    name = (columns or Columns()).label
    whole = True
    for _, row in read_rows(path):
        text = str(row.get(name)).strip()
        if (
            isinstance(row.get(name), bool)
            or not _FRACTION.fullmatch(text)
            or (not is_csv(path) and isinstance(row[name], str))
        ):
            return False
        whole = whole and float(text).is_integer()
    return not whole


def described(path: str | Path, columns: Columns | None = None, *, labelled: bool = True) -> str | None:
    """A sentence that says how a CSV file is read, so that the user can check it; None for other files."""
    path, columns = Path(path), columns or Columns()
    read_with = described_rows(path)
    if read_with is None:
        return None
    _, row = next(read_rows(path), (0, {}))
    texts = " and ".join(map(repr, columns.texts_of(row)))
    label = f", label from {columns.label!r}" if labelled else ""
    return f"{read_with}: text from {texts}{label}"


def read_texts(path: str | Path, columns: Columns | None = None) -> tuple[list[Text], Counter[str]]:
    """Texts without labels: the lines of a .txt file, or the texts of JSON lines or CSV. The notes count blank lines."""
    examples, notes = read_unlabelled(path, columns)
    return [example.text for example in examples], notes


def read_unlabelled(path: str | Path, columns: Columns | None = None) -> tuple[list[Example], Counter[str]]:
    """Like `read_texts`, with all columns of each text."""
    path = Path(path)
    if path.suffix != ".txt":
        return read(path, columns, labelled=False), Counter()
    require(columns in (None, Columns()), "{path} is plain text without columns: leave --text out", path=path)
    require(path.is_file(), "there is no such file: {path}", path=path)
    try:
        return lines_of(path.read_text(encoding="utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        where = f"byte offset {error.start:,}"
        raise undecodable(path, "utf-8", error.object[:SAMPLE], where, options=False) from None


def lines_of(content: str, name: str) -> tuple[list[Example], Counter[str]]:
    """Each line is one text. Blank lines are left out, and the notes count them."""
    # splitlines would also split at form feeds, and then a text would not be one line of the file
    lines = list(enumerate(content.removesuffix("\n").split("\n"), 1))
    found = [Example(Text(line), None, f"{name}, line {i:,}", {"text": line}) for i, line in lines if line.strip()]
    require(bool(found), "{name} holds no text: give a file with at least one line of text", name=name)
    return found, _blank([i for i, line in lines if not line.strip()])


def _blank(numbers: Sequence[int]) -> Counter[str]:
    """The note about blank lines. It gives a line number, because after a blank line text 5 is no longer line 5."""
    if not numbers:
        return Counter()
    several = f"blank lines left out (the first is line {numbers[0]:,})"
    return Counter({several if len(numbers) > 1 else f"blank line left out (line {numbers[0]:,})": len(numbers)})


def label_names(examples: Sequence[Example]) -> tuple[str, ...]:
    """The classes of the training examples. Numbers are sorted by value, words in alphabetical order."""
    names = {example.label for example in examples if example.label is not None}
    require(
        len(names) >= 2, "a classifier needs two labels or more, but the examples have {names}", names=sorted(names)
    )
    numbers = all(name.lstrip("-").isdigit() for name in names)
    return tuple(sorted(names, key=(lambda n: (int(n), n)) if numbers else (lambda n: (0, n))))


def label_numbers(examples: Sequence[Example], names: Sequence[str], file: str | Path) -> list[int]:
    """The number of each example's label. A label that no training example had is an error."""
    known = {name: number for number, name in enumerate(names)}
    unknown = next((e for e in examples if e.label not in known), None)
    if unknown is not None:
        raise UserError(
            "{where}: no training example has the label {label!r}; the known labels are {names}",
            where=unknown.where or file,
            label=unknown.label,
            names=list(names)[:20],
        )
    return [known[str(example.label)] for example in examples]


def few(examples: Sequence[Example], per_label: int, seed: int) -> list[Example]:
    """`per_label` examples of each label, drawn at random."""
    chosen: list[Example] = []
    rng = chance.generator(seed, chance.purpose("few labels"))
    for name in label_names(examples):
        same = [e for e in examples if e.label == name]
        require(
            len(same) >= per_label,
            (
                "the label {name!r} has {count_of_same} examples, but {per_label} examples of each label are "
                "needed: give more examples, or ask for fewer"
            ),
            name=name,
            count_of_same=len(same),
            per_label=per_label,
        )
        chosen += [same[i] for i in sorted(rng.choice(len(same), per_label, replace=False).tolist())]
    return chosen
