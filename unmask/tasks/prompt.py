"""Prompt: a task asked of a language model in words, by a template. JSON lines (or CSV) whose fields the template names.

Multiple choice: `choices` (a list) and `answer` (an index from 0, or one of them), or `label` as for choosing; where the
template has the choices, `label` is the name of one. Cloze: `answer` alone, the text that goes on from where the template ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UserError, require
from unmask.tasks._rows import read_rows
from unmask.tasks.choose import choice_number
from unmask.text.template import Template


@dataclass(frozen=True)
class PromptQuestion:
    """What stands before the answer, the answers to choose among (one: nothing to choose), and the right one."""

    prompt: str
    choices: tuple[str, ...]
    answer: int


def read(path: str | Path, template: Template) -> list[PromptQuestion]:
    """The questions of a file, all of them with choices or all without."""
    path = Path(path)
    questions = [_question(row, template, f"{path}, line {number:,}") for number, row in read_rows(path)]
    require(bool(questions), f"{path} holds no examples")
    require(
        len({len(question.choices) > 1 for question in questions}) == 1,
        f'{path} mixes examples with "choices" and without: give them to all, or to none',
    )
    return questions


def _question(row: dict[str, Any], template: Template, where: str) -> PromptQuestion:
    prompt = template.fill(row, where)
    if template.choices:
        return PromptQuestion(prompt, tuple(choice.words for choice in template.choices), _named(row, template, where))
    if "choices" not in row:
        require(
            "answer" in row, f'{where}: needs an "answer", and "choices" where it is one of several; got {sorted(row)}'
        )
        _require_texts([row["answer"]], f'{where}: "answer"')
        return PromptQuestion(prompt, (row["answer"],), 0)
    choices = row["choices"]
    require(
        isinstance(choices, list) and len(choices) >= 2,
        f'{where}: "choices" must be a list of two texts or more, got {choices!r:.60}',
    )
    _require_texts(choices, f"{where}: a choice")
    return PromptQuestion(prompt, tuple(choices), _right(row, choices, where))


def _named(row: dict[str, Any], template: Template, where: str) -> int:
    """Which of the template's choices has the example's label for its name; never an index, as 0 and 1 are labels too."""
    filled = [name for name, value in row.items() if value not in (None, "")]
    require(
        "label" in filled, f'{where}: the template has choices, and the example no "label"; it has {", ".join(filled)}'
    )
    names = [choice.label for choice in template.choices]
    require(
        str(row["label"]) in names,
        f"{where}: the label must be one of {', '.join(names)}, the names of the template's choices, got "
        f"{row['label']!r:.60}: name them as the file does, for example 'choices: 0=terrible, 1=great'",
    )
    return names.index(str(row["label"]))


def _right(row: dict[str, Any], choices: list[str], where: str) -> int:
    """Which of the example's own choices is right, by its answer, or by the label that adapting to choose reads."""
    numbers = [_number(row["answer"], choices, where)] if row.get("answer") is not None else []
    numbers += [choice_number(row["label"], choices, where)] if row.get("label") is not None else []
    require(bool(numbers), f'{where}: has "choices" and does not say which is right: give "answer" or "label"')
    require(
        len(set(numbers)) == 1,
        f'{where}: "answer" is {row.get("answer")!r:.40} and "label" is {row.get("label")!r:.40}, two different choices: '
        "give one of the two",
    )
    return numbers[0]


def _require_texts(values: list[Any], what: str) -> None:
    for value in values:
        require(isinstance(value, str) and bool(value.strip()), f"{what} must be a text, got {value!r:.40}")


def _number(value: Any, choices: list[str], where: str) -> int:
    """Which of the choices an answer is: one of them by its words, or an index."""
    by_words = choices.index(str(value)) if str(value) in choices else None
    index = int(value) if str(value).isdecimal() and int(value) < len(choices) else None
    require(
        not isinstance(value, int) or None in (by_words, index) or by_words == index,
        f"{where}: the answer {value} is an index and also one of the choices {choices}: write it as a text",
    )
    found = by_words if by_words is not None else index
    if found is None:
        raise UserError(
            f"{where}: the answer must be one of {choices} or an index from 0 to {len(choices) - 1}, got {value!r:.60}"
        )
    return found
