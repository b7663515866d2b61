"""Prompt a language model: a template turns each example into a text. JSON lines (or CSV) with the template's fields.

Multiple choice: an example has `choices` (a list) and `answer` (an index from 0, or the text of a choice), or `label` as in
the task `choose`. If the template has the choices, `label` is the name of one of them.
Cloze: an example has only `answer`, the text that follows the prompt.
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
    """A prompt, the possible answers and the right one."""

    prompt: str  # the text before the answer
    choices: tuple[str, ...]  # the possible answers; a cloze question has only the right one
    answer: int  # the index of the right choice


def read(path: str | Path, template: Template) -> list[PromptQuestion]:
    """The questions of a file. Either all of them have choices, or none has."""
    path = Path(path)
    questions = [_question(row, template, f"{path}, line {number:,}") for number, row in read_rows(path)]
    require(bool(questions), "{path} holds no examples: give a file with at least one example", path=path)
    require(
        len({len(question.choices) > 1 for question in questions}) == 1,
        '{path} mixes examples with "choices" and examples without: give "choices" to every example, or to none',
        path=path,
    )
    return questions


def _question(row: dict[str, Any], template: Template, where: str) -> PromptQuestion:
    prompt = template.fill(row, where)
    if template.choices:
        return PromptQuestion(prompt, tuple(choice.words for choice in template.choices), _named(row, template, where))
    if "choices" not in row:
        require(
            "answer" in row,
            '{where}: an example needs "answer", and for multiple choice also "choices"; got the columns {row}',
            where=where,
            row=sorted(row),
        )
        _require_texts([row["answer"]], f'{where}: "answer"')
        return PromptQuestion(prompt, (row["answer"],), 0)
    choices = row["choices"]
    require(
        isinstance(choices, list) and len(choices) >= 2,
        '{where}: "choices" must be a list of two texts or more, got {choices!r:.60}',
        where=where,
        choices=choices,
    )
    _require_texts(choices, f"{where}: a choice")
    return PromptQuestion(prompt, tuple(choices), _right(row, choices, where))


def _named(row: dict[str, Any], template: Template, where: str) -> int:
    """The index of the template's choice whose name is the example's label. The label is never read as an index."""
    filled = [name for name, value in row.items() if value not in (None, "")]
    require(
        "label" in filled,
        '{where}: the template has choices, so each example needs "label"; this one has only {filled}',
        where=where,
        filled=", ".join(filled),
    )
    names = [choice.label for choice in template.choices]
    require(
        str(row["label"]) in names,
        (
            "{where}: the label must be the name of a choice of the template ({names}), got {row!r:.60}: use the "
            "labels of the file as names in the template, for example 'choices: 0=terrible, 1=great'"
        ),
        where=where,
        names=", ".join(names),
        row=row["label"],
    )
    return names.index(str(row["label"]))


def _right(row: dict[str, Any], choices: list[str], where: str) -> int:
    """The index of the right choice of an example: given by `answer`, or by `label` as in the task `choose`."""
    numbers = [_number(row["answer"], choices, where)] if row.get("answer") is not None else []
    numbers += [choice_number(row["label"], choices, where)] if row.get("label") is not None else []
    require(bool(numbers), '{where}: the example has "choices" but no right one: give "answer" or "label"', where=where)
    require(
        len(set(numbers)) == 1,
        (
            '{where}: "answer" is {row!r:.40} and "label" is {row_2!r:.40}: they mean two different choices; give '
            "only one of them"
        ),
        where=where,
        row=row.get("answer"),
        row_2=row.get("label"),
    )
    return numbers[0]


def _require_texts(values: list[Any], what: str) -> None:
    for value in values:
        require(
            isinstance(value, str) and bool(value.strip()),
            "{what} must be a text, got {value!r:.40}",
            what=what,
            value=value,
        )


def _number(value: Any, choices: list[str], where: str) -> int:
    """The index of the choice that an answer means. The answer is the text of a choice, or an index."""
    by_words = choices.index(str(value)) if str(value) in choices else None
    index = int(value) if str(value).isdecimal() and int(value) < len(choices) else None
    require(
        not isinstance(value, int) or None in (by_words, index) or by_words == index,
        (
            "{where}: the answer {value} is an index and also the text of one of the choices {choices}: write it "
            "as a string"
        ),
        where=where,
        value=value,
        choices=choices,
    )
    found = by_words if by_words is not None else index
    if found is None:
        raise UserError(
            (
                "{where}: the answer must be one of {choices} or an index from 0 to {count_of_choices}, got "
                "{value!r:.60}"
            ),
            where=where,
            choices=choices,
            count_of_choices=len(choices) - 1,
            value=value,
        )
    return found
