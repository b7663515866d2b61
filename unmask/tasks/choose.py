"""Choose: one of several texts. JSON lines with `context` (or `text`), `question` or both, `choices` and `label`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unmask.axes import Curve
from unmask.data.examples import Text
from unmask.errors import require
from unmask.tasks._rows import read_rows
from unmask.tasks._training import Training, check_dropout, check_language


@dataclass(frozen=True)
class Choose(Training):
    """How a model is adapted to choosing: every choice is read after the context and the question, and gets a score."""

    dropout: float = 0.1  # before the output
    pooler: bool | None = None  # a dense layer before the output; none: the recipe's, in models that see everything
    activation: Literal["tanh", "gelu"] | None = None  # of that layer; none: the recipe's
    # weight of predicting the next token in addition to the choice; None: the recipe's
    language: float | Curve | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        check_language(self.language)


@dataclass(frozen=True)
class Question:
    """What is to be chosen."""

    context: str  # with the question at its end
    choices: tuple[str, ...]
    label: int | None = None  # which choice is right; none where it is not known

    @property
    def readings(self) -> tuple[Text, ...]:
        """One per choice."""
        return tuple(Text(self.context, choice) for choice in self.choices)


def read(path: str | Path, *, labelled: bool = True) -> list[Question]:
    """The questions of a file; with `labelled`, every one must have a label."""
    path = Path(path)
    questions = [_question(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
    require(bool(questions), f"{path} holds no examples")
    return questions


def _question(row: dict[str, Any], where: str, labelled: bool) -> Question:
    context = _context(row, where)
    choices = row.get("choices")
    require(
        isinstance(choices, list) and all(map(_is_text, choices)),
        f'{where}: needs "choices", a list of texts; got {choices!r:.60}',
    )
    assert isinstance(choices, list)
    require(len(choices) >= 2, f"{where}: needs two choices or more, got {len(choices)}")
    require(len(set(choices)) == len(choices), f"{where}: two choices are the same text")
    require(not labelled or row.get("label") is not None, f'{where}: has no "label"')
    label = None if row.get("label") is None else choice_number(row["label"], choices, where)
    return Question(context, tuple(choices), label)


def _context(row: dict[str, Any], where: str) -> str:
    """The context and the question, or the one of them that there is."""
    given = {name: row[name] for name in ("context", "text", "question") if row.get(name) is not None}
    for name, value in given.items():
        require(isinstance(value, str), f'{where}: "{name}" must be a text, got {value!r:.60}')
    filled = {name: value.strip() for name, value in given.items() if value.strip()}
    require(bool(filled), f'{where}: needs "context" (or "text"), "question", or both, not empty; got {sorted(row)}')
    parts = filled.get("context") or filled.get("text"), filled.get("question")
    return " ".join(part for part in parts if part)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def choice_number(label: Any, choices: Sequence[str], where: str) -> int:
    """A label is the text of a choice, or its number, counted from 0."""
    number = choices.index(label) if label in choices else label
    require(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(choices),
        f"{where}: the label is the text of a choice or its number, 0 to {len(choices) - 1}; got {label!r:.60}",
    )
    return int(number)
