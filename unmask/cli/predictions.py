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
    from unmask.axes import Answer, Example, Task
    from unmask.tasks.classify import Columns

STDIN = "-"
OUTPUTS = (".csv", ".tsv", ".jsonl")


@dataclass(frozen=True)
class Inputs:
    """What is to be answered."""

    examples: Sequence[Example]
    notes: Counter[str] = field(default_factory=Counter)  # what was left out
    file: Path | None = None  # where it was read from


def given(task: Task, argument: str, second: str | None, columns: Columns) -> Inputs:
    """The examples of a file, the lines of the standard input, or the one text or pair that was typed."""
    from unmask.tasks._labelled import Columns, lines_of

    file = file_of(argument)
    if file is not None:
        require(
            second is None,
            f"{file} is a file: a second text goes with a text; pairs in a file have text_a and text_b",
        )
        return Inputs(*task.read(file, columns, labelled=False), file)
    require(columns == Columns(), "--text names a column of a file, and no file was given: leave it out")
    if argument == STDIN and second is None:
        lines, notes = lines_of(sys.stdin.read().replace("\r\n", "\n"), "the standard input")
        return Inputs(task.given([line.text.a for line in lines], [line.where for line in lines]), notes)
    require(bool(argument.strip()) and (second is None or bool(second.strip())), "the text is empty")
    return Inputs(task.given([argument if second is None else (argument, second)], [repr(argument[:60])]))


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


def check_output(out: Path, overwrite: bool) -> None:
    """Refuse a name that no answers can be written to, before any work is done."""
    require(out.suffix in OUTPUTS, f"answers are written as {', '.join(OUTPUTS)}, got {out}")
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")


def check_top(top: int, labels: Sequence[str]) -> None:
    require(top >= 1, f"--top must be 1 or more, got {top}")
    require(not labels or top <= len(labels), f"--top {top} is more than the {len(labels)} labels of this model")


def write(out: Path, rows: Sequence[Mapping[str, Any]], found: Sequence[Answer], top: int) -> None:
    """The columns of the input and the answers; where the input has a column of that name, predicted_label and so on."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    before = "predicted_" if set(names) & set(found[0].columns(top)) else ""
    answers = [{f"{before}{name}": value for name, value in one.columns(top).items()} for one in found]
    whole = [dict(row) | one for row, one in zip(rows, answers, strict=True)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        if out.suffix == ".jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in whole)
        else:
            columns = [*names, *answers[0]]
            _table(file, "\t" if out.suffix == ".tsv" else ",").writerows([columns, *_cells(whole, columns)])


def show(texts: Sequence[Sequence[str]], found: Sequence[Answer], top: int) -> None:
    """A line for each text on the output: the best labels with their probabilities, then the text; as TSV, without a header."""
    for text, one in zip(texts, found, strict=True):
        best = [f"{cell:.4f}" if isinstance(cell, float) else cell for cell in one.columns(top).values()]
        _table(sys.stdout, "\t").writerow([*best, *text])


def _table(file: IO[str], delimiter: str) -> Any:
    return csv.writer(file, delimiter=delimiter, lineterminator="\n")


def _cells(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[list[Any]]:
    for row in rows:
        values = [row.get(name) for name in columns]
        yield [json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict | bool) else v for v in values]


def as_json(texts: Sequence[str], found: Answer, top: int) -> dict[str, Any]:
    """A text or a pair, and its answer; with `top` over 1, the best answers in order."""
    named = {"text": texts[0]} if len(texts) == 1 else {"text_a": texts[0], "text_b": texts[1]}
    return named | found.as_json(top)
