"""What the verb predict reads and writes: texts from the command line, a file or the standard input; answers to either."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from unmask.cli import output
from unmask.cli.output import Said
from unmask.errors import require

if TYPE_CHECKING:
    from unmask import Model
    from unmask.axes import Answer

STDIN = "-"
OUTPUTS = (".csv", ".tsv", ".jsonl")


def given(model: Model, argument: str, second: str | None, columns: Sequence[str], said: Said) -> list[Any]:
    """The examples of a file, the lines of the standard input, or the one text or pair that was typed."""
    from unmask.api.inputs import file_named, read_lines

    file = file_named(argument)
    if file is not None:
        require(
            second is None,
            "{file} is a file: a second text goes with a text; pairs in a file have text_a and text_b",
            file=file,
        )
        return model.read_examples(file, text=columns, tell=said)
    require(not columns, "--text names a column of a file, and no file was given: leave it out")
    if argument == STDIN and second is None:
        lines = read_lines(sys.stdin.read(), "the standard input", tell=said)
        return model.examples(list(lines.values()), where=list(lines))
    require(bool(argument.strip()) and (second is None or bool(second.strip())), "the text is empty")
    return model.examples([argument if second is None else (argument, second)], where=[repr(argument[:60])])


def check_output(out: Path, overwrite: bool) -> None:
    """Refuse a name that no answers can be written to, before any work is done."""
    require(out.suffix in OUTPUTS, "answers are written as {outputs}, got {out}", outputs=", ".join(OUTPUTS), out=out)
    require(overwrite or not out.exists(), "{out} exists already: choose another --out, or pass --overwrite", out=out)


def check_top(top: int, labels: Sequence[str]) -> None:
    require(top >= 1, "--top must be 1 or more, got {top}", top=top)
    require(
        not labels or top <= len(labels),
        ("--top {top} is more than the {count_of_labels} labels of this model"),
        top=top,
        count_of_labels=len(labels),
    )


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


def show(texts: Sequence[Sequence[str]], found: Sequence[Answer], top: int, json_: bool) -> None:
    """A line for each text on the output, as JSON, or as TSV without a header: the best labels with their probabilities,
    then the text."""
    for text, one in zip(texts, found, strict=True):
        if json_:
            output.as_json(_as_json(text, one, top), lines=True)
            continue
        best = [_shown(cell) for cell in one.columns(top).values()]
        _table(sys.stdout, "\t").writerow([*best, *text])


def _shown(cell: Any) -> Any:
    """A value of an answer on the screen."""
    if isinstance(cell, float):
        return f"{cell:.4f}"
    if isinstance(cell, dict):
        return " ".join(f"{name}={_shown(value)}" for name, value in cell.items())
    return " ".join(map(_shown, cell)) if isinstance(cell, list) else cell


def _table(file: IO[str], delimiter: str) -> Any:
    return csv.writer(file, delimiter=delimiter, lineterminator="\n")


def _cells(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[list[Any]]:
    for row in rows:
        values = [row.get(name) for name in columns]
        yield [json.dumps(v, ensure_ascii=False) if isinstance(v, list | dict | bool) else v for v in values]


def _as_json(texts: Sequence[str], found: Answer, top: int) -> dict[str, Any]:
    """A text or a pair, and its answer; with `top` over 1, the best answers in order."""
    named = {"text": texts[0]} if len(texts) == 1 else {"text_a": texts[0], "text_b": texts[1]}
    return named | found.as_json(top)
