"""What the verb predict reads and writes: texts from the command line, a file or the standard input; answers to either."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from unmask.errors import UserError, require

if TYPE_CHECKING:
    from unmask.infer import Prediction
    from unmask.tasks.classify import Columns, Example

STDIN = "-"
OUTPUTS = (".csv", ".tsv", ".jsonl")


@dataclass(frozen=True)
class Inputs:
    """What is to be labelled."""

    examples: list[Example]
    notes: Counter[str] = field(default_factory=Counter)  # what was left out
    file: Path | None = None  # where it was read from


def given(argument: str, second: str | None, columns: Columns) -> Inputs:
    """The texts of a file, the lines of the standard input, or the one text or pair that was typed."""
    from unmask.data.examples import Text
    from unmask.tasks.classify import Columns, Example, lines_of, read_unlabelled

    file = file_of(argument)
    if file is not None:
        require(
            second is None,
            f"{file} is a file: a second text goes with a text; pairs in a file have text_a and text_b",
        )
        return Inputs(*read_unlabelled(file, columns), file)
    require(columns == Columns(), "--text names a column of a file, and no file was given: leave it out")
    if argument == STDIN and second is None:
        return Inputs(*lines_of(sys.stdin.read().replace("\r\n", "\n"), "the standard input"))
    require(bool(argument.strip()) and (second is None or bool(second.strip())), "the text is empty")
    row = {"text": argument} if second is None else {"text_a": argument, "text_b": second}
    return Inputs([Example(Text(argument, second), None, repr(argument[:60]), row)])


def file_of(argument: str) -> Path | None:
    """The file that an argument names; None if it is a text. What looks like a file must exist."""
    from unmask.tasks._rows import SUFFIXES
    from unmask.text.documents import suffixes

    path = Path(argument)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError):  # too long for the name of a file, or with a character that none may have
        return None
    if suffixes(path)[0] in SUFFIXES and not any(character.isspace() for character in argument):
        raise UserError(f"no such file: {path}; to label this text itself, pipe it: echo TEXT | unmask predict RUN -")
    return None


def rows_of_questions(file: Path) -> list[Mapping[str, Any]]:
    """The rows of a file of choices, with all of their columns."""
    from unmask.tasks._rows import read_rows

    return [row for _, row in read_rows(file)]


def question_file(argument: str, second: str | None) -> Path:
    """The file of choices that a model that chooses needs."""
    file = file_of(argument) if second is None else None
    if file is None:
        raise UserError(
            f'this model chooses: give a .jsonl file with "context" or "question", and "choices", got {argument!r:.60}'
        )
    return file


def check_output(out: Path, overwrite: bool) -> None:
    """Refuse a name that no answers can be written to, before any work is done."""
    require(out.suffix in OUTPUTS, f"answers are written as {', '.join(OUTPUTS)}, got {out}")
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")


def check_top(top: int, labels: Sequence[str]) -> None:
    require(top >= 1, f"--top must be 1 or more, got {top}")
    require(not labels or top <= len(labels), f"--top {top} is more than the {len(labels)} labels of this model")


def answers(found: Prediction, top: int, before: str = "") -> dict[str, Any]:
    """The best labels and their probabilities, by column: label, probability, label_2, probability_2 ..."""
    numbers = ["" if place == 1 else f"_{place}" for place in range(1, top + 1)]
    columns: dict[str, Any] = {}
    best = [(label, round(share, 6)) for label, share in found.top(top)]
    for number, (label, share) in zip(numbers, [*best, *[("", "")] * top], strict=False):
        columns |= {f"{before}label{number}": label, f"{before}probability{number}": share}
    return columns


def write(out: Path, rows: Sequence[Mapping[str, Any]], found: Sequence[Prediction], top: int) -> None:
    """The columns of the input and the answers; where the input has a column of that name, predicted_label and so on."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    before = "predicted_" if set(names) & set(answers(found[0], top)) else ""
    whole = [dict(row) | answers(one, top, before) for row, one in zip(rows, found, strict=True)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        if out.suffix == ".jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in whole)
        else:
            columns = [*names, *answers(found[0], top, before)]
            _table(file, "\t" if out.suffix == ".tsv" else ",").writerows([columns, *_cells(whole, columns)])


def show(texts: Sequence[Sequence[str]], found: Sequence[Prediction], top: int) -> None:
    """A line for each text on the output: the best labels with their probabilities, then the text; as TSV, without a header."""
    for text, one in zip(texts, found, strict=True):
        best = [f"{cell:.4f}" if isinstance(cell, float) else cell for cell in answers(one, top).values()]
        _table(sys.stdout, "\t").writerow([*best, *text])


def _table(file: IO[str], delimiter: str) -> Any:
    return csv.writer(file, delimiter=delimiter, lineterminator="\n")


def _cells(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[list[Any]]:
    for row in rows:
        values = [row.get(name) for name in columns]
        yield [json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict | bool) else v for v in values]


def as_json(texts: Sequence[str], found: Prediction, top: int) -> dict[str, Any]:
    """A text or a pair, its label and the probability of every label; with `top` over 1, the best of them in order."""
    named = {"text": texts[0]} if len(texts) == 1 else {"text_a": texts[0], "text_b": texts[1]}
    best = [{"label": label, "probability": share} for label, share in found.top(top)]
    return named | {"label": found.label, "probabilities": found.probabilities} | ({"top": best} if top > 1 else {})


def texts_of(example: Example) -> list[str]:
    return [text for text in (example.text.a, example.text.b) if text is not None]
