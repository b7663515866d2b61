"""Evaluate a model: on examples of its task, on a text, on minimal pairs, on last words, or by prompts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.evaluate import last_word, minimal_pairs
from unmask.evaluate.context_curve import (
    check_file,
    checked_lengths,
    context_curve,
    trace_context,
    trace_read_text,
    write_curve,
)
from unmask.evaluate.perplexity import evaluate_text, score_read_text, score_text, windowing
from unmask.evaluate.prompts import Scoring, ask, evaluate_prompts
from unmask.evaluate.scored_text import read_scored_text
from unmask.evaluate.sentence_scores import score_sentences
from unmask.infer.answer import TaskReader, task_of_model
from unmask.infer.likelihood import predicts_next
from unmask.infer.model import Model
from unmask.tasks._rows import read_rows
from unmask.tasks.classify import Columns
from unmask.tasks.seen_examples import note_seen
from unmask.text.documents import FORMATS, suffixes

__all__ = [
    "Scoring", "ask", "check_file", "check_kind", "checked_lengths", "context_curve", "evaluate_examples",
    "evaluate_file", "evaluate_prompts", "evaluate_text", "is_language_model", "read_scored_text", "score_file", "score_read_text",
    "score_sentences", "score_text", "trace_context", "trace_read_text", "windowing", "write_curve",
]  # fmt: skip


def is_language_model(model: Model) -> bool:
    """Whether a model is scored on text instead of examples: it was not adapted, and it predicts the next token."""
    return model.recipe.task is None and predicts_next(model)


def check_kind(model: Model, file: str | Path) -> None:
    """Refuse a file of the wrong kind. A language model is scored on plain text, an adapted model on examples."""
    path = Path(file)
    if is_language_model(model):
        readable = path.is_file() and suffixes(path) in ((".jsonl", ""), (".jsonl", ".gz"), (".jsonl", ".xz"))
        labelled = readable and "label" in next(read_rows(path), (0, {}))[1]
        require(
            not labelled,
            (
                "{file} holds labelled examples, but {folder} has no labels: it is scored on plain text "
                "({formats}); adapt it first with 'unmask adapt', or prompt it with 'unmask zero-shot'"
            ),
            file=file,
            folder=model.folder,
            formats=", ".join(FORMATS),
        )
    else:
        task = model.recipe.task
        formats = (".jsonl", ".csv") if task is None else task.suffixes
        require(
            suffixes(path)[0] not in (".txt", ".parquet") or suffixes(path)[0] in formats,
            (
                "{file} is plain text, but {folder} is scored on examples of its task ({formats}): to measure "
                "perplexity, use a model that reads from left to right and was not adapted"
            ),
            file=file,
            folder=model.folder,
            formats=" or ".join(formats) if task is None else ", ".join(formats),
        )


def evaluate_file(
    model: Model, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8", columns: Columns | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The scores of a language model on a text, or of an adapted model on a file of its task, with `notes` for the user."""
    *_, last = score_file(
        model, file, context=context, stride=stride, memory=memory, whole=whole, lines=lines, encoding=encoding,
        columns=columns,
    )  # fmt: skip
    return last


def score_file(
    model: Model, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8", columns: Columns | None = None,
    curve: bool = False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Score a model on a file, yielding a record per pass over a text. The last record holds the scores and `notes`.

    The columns of the file say whether it holds minimal pairs or last words. `curve`: also measure the context curve of a
    language model (see `context_curve`); the last record has it as `curve`."""
    unnamed = columns is None or columns == Columns()  # named columns are those of a task
    kind = _kind(Path(file)) if unnamed else None
    if kind is None:
        check_kind(model, file)
    if kind is None and is_language_model(model):
        yield from _score_text(model, file, context, stride, memory, whole, lines, encoding, curve)
        return
    held = kind or "examples"
    require(
        context is None and stride is None and memory is None and not whole and not lines and encoding == "utf-8",
        (
            "context, stride, memory, whole, lines and encoding are options for plain text, but {folder} is scored "
            "on {held}: leave them out"
        ),
        folder=model.folder,
        held=held,
    )
    require(
        not curve,
        "--curve measures a language model on a text, but {folder} is scored on {held}: leave it out",
        folder=model.folder,
        held=held,
    )
    if kind is None:
        examples, notes = task_of_model(model).read(Path(file), columns)
        scores = evaluate_examples(model, examples)
        yield scores | {"notes": scores["notes"] | dict(notes)}
        return
    require(
        model.recipe.task is None,
        "{file} holds {kind}, which score a pretrained model, but {folder} was adapted to a task: give the run that it was "
        "adapted from, or a file of its task",
        file=file,
        kind=kind,
        folder=model.folder,
    )
    yield from _KINDS[kind][1](model, file)


def _kind(file: Path) -> str | None:
    """What a file without a text holds, found by its columns: minimal pairs or last words; None: neither."""
    form, compression = suffixes(file)
    if not file.is_file() or form not in (".jsonl", ".csv", ".tsv") or compression not in ("", ".gz", ".xz"):
        return None
    names = next(read_rows(file), (0, {}))[1]
    return next((kind for kind, (columns, _) in _KINDS.items() if set(columns) <= set(names)), None)


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Model, str | Path], Iterator[dict[str, Any]]]]] = {
    "minimal pairs": (
        minimal_pairs.COLUMNS,
        lambda model, file: minimal_pairs.trace_pairs(model, minimal_pairs.read_pairs(file)),
    ),
    "last words": (
        last_word.COLUMNS,
        lambda model, file: last_word.trace_last_words(model, last_word.read_last_words(file)),
    ),
}


def _score_text(
    model: Model, file: str | Path, context: int | None, stride: int | None, memory: int | None, whole: bool, lines: bool,
    encoding: str, curve: bool,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Score a text, and measure its context curve if asked. The text is read once, so each note is counted once."""
    require(
        not curve or not memory,
        "--curve measures windows without a memory: leave --memory out, or run the command without --curve for each length of "
        "the memory",
    )
    way = windowing(model, context=context, stride=stride, memory=memory)
    stream = read_scored_text(model, file, whole=whole, lines=lines, encoding=encoding)
    if not curve:
        yield from score_read_text(model, stream, way)
        return
    lengths = checked_lengths(model, context=context)
    scores = yield from _but_last(score_read_text(model, stream, way))
    measured = yield from _but_last(trace_read_text(model, stream, lengths))
    yield scores | {"curve": measured, "notes": scores["notes"] | measured["notes"]}


def _but_last(records: Iterable[dict[str, Any]]) -> Generator[dict[str, Any], None, dict[str, Any]]:
    """Yield all records except the last one, which is returned."""
    last: dict[str, Any] = {}
    for number, record in enumerate(records):
        if number:
            yield last
        last = record
    return last


def evaluate_examples(model: Model, examples: Sequence[Any]) -> dict[str, Any]:
    """The scores of an adapted model on examples of its task. The task computes them; `notes` are added."""
    task, reader = task_of_model(model), TaskReader(model)
    task.check(examples, reader.name)
    found = task.answer(reader, examples)
    notes = found.notes + note_seen(model.folder, task, examples)
    return task.score(reader, examples, found.answers) | {"notes": dict(notes)}
