"""Examples of one or two texts: made from what a user gives, and checked against what a model reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from unmask.data.examples import Text
from unmask.errors import UserError, require
from unmask.tasks._labelled import Example


def texts_in(text: Text) -> Literal[1, 2]:
    return 1 if text.b is None else 2


def check_texts(examples: Sequence[Example], wanted: int | None, reader: str) -> None:
    """Refuse examples with another number of texts than the model reads; None: it is not known."""
    wrong = next((i for i, e in enumerate(examples) if wanted not in (None, texts_in(e.text))), None)
    if wrong is not None:
        where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
        raise UserError(
            "{where}: the example has one text, but {reader} reads pairs: give two texts (text_a and text_b, or --text "
            "twice)"
            if wanted == 2
            else "{where}: the example has two texts, but {reader} reads one: give one text (text, or --text once)",
            where=where,
            reader=reader,
        )


def examples_of(values: Sequence[Any], where: Sequence[str]) -> list[Example]:
    """Turn texts and pairs of texts into examples. Values that are examples stay as they are."""
    names = where or [f"text number {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
    return [_example(value, name) for value, name in zip(values, names, strict=True)]


def _example(value: Any, where: str) -> Example:
    """The example of a value: the value if it is an example; otherwise made from a text or a pair of texts."""
    if isinstance(value, Example):
        return value
    texts = (value,) if isinstance(value, str) else (value.a, value.b) if isinstance(value, Text) else tuple(value)
    texts = tuple(text for text in texts if text is not None)
    require(
        1 <= len(texts) <= 2 and all(isinstance(text, str) for text in texts),
        "{where}: an example has one or two texts, got {value!r:.60}",
        where=where,
        value=value,
    )
    row = {"text": texts[0]} if len(texts) == 1 else {"text_a": texts[0], "text_b": texts[1]}
    return Example(Text(*texts), None, where, row)


def two_texts(value: Any, where: str, wanted: str) -> tuple[str, str]:
    """A pair of texts that a user gave. `wanted`: what a model of the task does with them, for the error."""
    pair = tuple(value) if isinstance(value, list | tuple) else (value,)
    require(
        len(pair) == 2 and all(isinstance(one, str) and one.strip() for one in pair),
        "{where}: this model {wanted}, got {value!r:.60}",
        where=where,
        wanted=wanted,
        value=value,
    )
    return str(pair[0]), str(pair[1])
