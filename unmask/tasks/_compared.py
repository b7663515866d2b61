"""Read texts to compare: pairs with a label, anchors with what belongs to them, or texts alone.

A file of pairs has `text_a` and `text_b`, and `label` if it has labels. A file for search has `anchor`, `positive` and, if
there are any, `negative`, a text or a list of texts. A file of texts alone is plain text, or has `text`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unmask.errors import UserError, require
from unmask.tasks._labelled import Columns, read_unlabelled
from unmask.tasks._rows import read_rows
from unmask.text import Corpus
from unmask.text.documents import NO_BLANK_LINE, suffixes
from unmask.text.sentences import sentence_starts

Alone = Literal["dropout", "neighbour"]  # what texts without labels are compared with
_NEEDED = (
    'an example needs "text_a" and "text_b" (with "label", if there are labels), or "anchor" and "positive" (with '
    '"negative", if there are any), or "text" alone'
)
_ONE_DOCUMENT = (
    "files without a blank line, each read as one document: put a blank line between documents, otherwise the last sentence of "
    "one is paired with the first of the next"
)


@dataclass(frozen=True)
class Compared:
    """Two texts that are compared, and more that do not belong to the first."""

    texts: tuple[str, ...]  # the first two are a pair; the others are negatives of the first
    label: str | None = None  # a class or a number, as it is written; None if there is none
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def shown(self) -> tuple[str, ...]:
        return self.texts[:2]

    @property
    def number(self) -> float | None:
        """The label as a number; None if it is none."""
        try:
            return None if self.label is None else float(self.label)
        except ValueError:
            return None


def read(
    path: Path, columns: Columns | None, *, alone: Alone | None, labelled: bool
) -> tuple[list[Compared], Counter[str]]:
    """The examples of a file. `alone`: what to do with texts without a second one; None: they are refused."""
    columns = columns or Columns()
    if suffixes(path)[0] == ".txt":
        require(columns == Columns(), "{path} is plain text without columns: leave --text and --label out", path=path)
        return _plain(path, _checked(alone, path))
    first = next(read_rows(path), (0, {}))[1]
    single = len(columns.text) == 1 or (not columns.text and "text" in first and not {"text_a", "anchor"} & set(first))
    if single:
        texts, notes = read_unlabelled(path, columns)
        found = ((one.text.a, one.where) for one in texts)
        return _alone(found, _checked(alone, path), path), notes
    rows = read_rows(path)
    examples = [_compared(row, f"{path}, line {number:,}", columns, labelled) for number, row in rows]
    require(bool(examples), "{path} holds no examples: give a file with at least one example", path=path)
    with_label = [example for example in examples if example.label is not None]
    lacking = next((example for example in examples if example.label is None), None)
    require(
        not with_label or lacking is None,
        '{where}: the example has no "{label}", but others of the file have one: give all examples a label, or none',
        where=lacking.where if lacking else "",
        label=columns.label,
    )
    return examples, Counter()


def _checked(alone: Alone | None, path: Path) -> Alone:
    if alone is None:
        raise UserError(
            "{path} holds texts without a second text to compare them with: set loss=dropout (a text and itself, with "
            "different dropout) or loss=neighbour (a sentence and the next one), or give text_a and text_b, or anchor and "
            "positive",
            path=path,
        )
    return alone


def _plain(path: Path, alone: Alone) -> tuple[list[Compared], Counter[str]]:
    """For `dropout` every line is a text; for `neighbour` a blank line separates documents."""
    corpus = Corpus([path], lines=alone == "dropout")
    found = ((text, f"{path}, text {number:,}") for number, text in enumerate(corpus, 1))
    examples = _alone(found, alone, path)
    return examples, Counter({_ONE_DOCUMENT if note == NO_BLANK_LINE else note: n for note, n in corpus.notes.items()})


def _alone(texts: Iterable[tuple[str, str]], alone: Alone, path: Path) -> list[Compared]:
    """Pairs of a text and itself, or of a sentence and the next one of the same text."""
    if alone == "dropout":
        return [Compared((text.strip(), text.strip()), None, where, {"text": text}) for text, where in texts]
    pairs = [Compared(pair, None, where) for text, where in texts for pair in neighbours(text)]
    require(
        bool(pairs),
        "{path} has no text with two sentences, so no sentence has a neighbour: give longer texts (a blank line separates "
        "documents), or set loss=dropout",
        path=path,
    )
    return pairs


def neighbours(text: str) -> list[tuple[str, str]]:
    """Each sentence of a text with the next one."""
    starts = [*sentence_starts(text), len(text)]
    found = [text[a:b].strip() for a, b in zip(starts, starts[1:], strict=False)]
    sentences = [sentence for sentence in found if sentence]
    return list(zip(sentences, sentences[1:], strict=False))


def _compared(row: Mapping[str, Any], where: str, columns: Columns, labelled: bool) -> Compared:
    names = columns.text or (("anchor", "positive") if "anchor" in row else ("text_a", "text_b"))
    for name in names:
        require(
            name in row,
            "{where}: {needed}; the columns are {known}: name the two columns of a pair with --text NAME --text NAME",
            where=where,
            needed=_NEEDED if not columns.text else f"there is no column {name!r}",
            known=", ".join(map(repr, row)) or "none",
        )
    texts = [row[name] for name in names] + _negatives(row)
    for value in texts:
        require(
            isinstance(value, str) and bool(value.strip()),
            "{where}: a text is empty or not a string: {value!r:.60}",
            where=where,
            value=value,
        )
    return Compared(tuple(texts), _label(row, where, columns) if labelled else None, where, row)


def _negatives(row: Mapping[str, Any]) -> list[Any]:
    found = row.get("negative") if "anchor" in row else None
    return [] if found in (None, "", []) else list(found) if isinstance(found, list) else [found]


def _label(row: Mapping[str, Any], where: str, columns: Columns) -> str | None:
    value = row.get(columns.label)
    require(
        columns.label in row or columns.label == Columns.label,
        "{where}: there is no column {label!r}; the columns are {known}: name one of them with --label",
        where=where,
        label=columns.label,
        known=", ".join(map(repr, row)),
    )
    require(
        not isinstance(value, list | dict),
        "{where}: the label must be a word or a number, got {value!r:.60}",
        where=where,
        value=value,
    )
    return None if value in (None, "") else str(value).strip()
