"""Choose one of several texts. JSON lines with `context` (or `text`), `question` or both, `choices` and `label`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unmask.axes import Answered, Curve, Graded, Judged, Pretrained, ProbabilityTable, Reader
from unmask.data.examples import Laid, Text
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.tasks._answers import Prediction
from unmask.tasks._calibrated import Calibrated, probability_table
from unmask.tasks._labelled import fixed
from unmask.tasks._lists import same
from unmask.tasks._recipe import choice_head, weight_of_language, with_head
from unmask.tasks._rows import read_rows
from unmask.tasks._training import check_dropout, check_language


@dataclass(frozen=True)
class Question:
    """A context and the choices to choose from."""

    context: str  # with the question at its end
    choices: tuple[str, ...]  # the texts to choose from
    label: int | None = None  # the number of the right choice, counted from 0; None if it is not known
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def readings(self) -> tuple[Text, ...]:
        """One pair of texts per choice: the context and the choice."""
        return tuple(Text(self.context, choice) for choice in self.choices)

    @property
    def about(self) -> str | None:
        """The text that the question is about; None if the row has only one of both."""
        context = self.row.get("context") or self.row.get("text")
        return str(context) if context and self.row.get("question") else None

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.context,)


@dataclass(frozen=True)
class Choose(Calibrated):
    """How a model learns to choose: it reads every choice after the context and the question, and gives it a score."""

    dropout: float = 0.1  # before the output layer
    # whether there is a dense layer before the output; none: the recipe's value if tokens see both sides, otherwise false
    pooler: bool | None = None
    activation: Literal["tanh", "gelu"] | None = None  # of that dense layer; none: the recipe's value
    # weight of the loss of the next token, which is added to the loss of the choice; none: the recipe's value
    language: float | Curve | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        check_language(self.language)

    @property
    def labels(self) -> tuple[str, ...]:
        return ()  # each question has its own choices

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("choices", "label"),)

    @property
    def predicts_next(self) -> bool:
        return True

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("accuracy",)

    @property
    def head(self) -> str:
        return "choice"

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Question], Counter[str]]:
        fixed(columns, "choose")
        return read(path, labelled=labelled), Counter()

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Question]:
        for value in values:
            require(
                isinstance(value, Question),
                (
                    'this model chooses between texts, got {value!r:.60}: give a .jsonl file with "context" or '
                    '"question", and "choices" (in Python, give a Question)'
                ),
                value=value,
            )
        return list(values)

    def learn(self, examples: Sequence[Question]) -> Choose:
        return self

    def check(self, examples: Sequence[Question], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, question in enumerate(examples) if labelled and question.label is None), None)
        if wrong is not None:
            where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
            raise UserError("{where}: the example has no label: give the number of the right choice", where=where)

    def recipe(self, base: Pretrained) -> Recipe:
        """The recipe of the model that chooses. If `language` is not 0, it also predicts the next token."""
        language = weight_of_language(base, self.language)
        head = choice_head(base, dropout=self.dropout, pooler=self.pooler, activation=self.activation)
        task = self.decided(
            base.recipe, language=language, pooler=head.pooler, activation=head.activation if head.pooler else None
        )
        return with_head(base, task, self.head, head, language)

    def lay_out(self, examples: Sequence[Question], *, labelled: bool = True) -> Laid:
        """A row for each choice. If a context is too long, its end is kept, because the question is at the end."""
        labels = [question.label for question in examples if question.label is not None] if labelled else ()
        return Laid([question.readings for question in examples], labels, keep="back")

    def baseline(self, examples: Sequence[Question]) -> dict[str, Any]:
        """The accuracy of choosing at random."""
        chance = sum(1 / len(question.choices) for question in examples) / len(examples)
        return {"baseline": {"label": None, "accuracy": chance}}

    def answer(self, model: Reader, examples: Sequence[Question]) -> Answered:
        """The most likely choice of each question, and the probability of every choice."""
        scores, notes = model.scores("choice scores", self.lay_out(examples, labelled=False))
        # scores beyond the last choice of a question are unused: another question of the batch has more choices
        own = [(one.choices, row[: len(one.choices)]) for one, row in zip(examples, scores, strict=True)]
        return Answered([self.predicted(*pair) for pair in own], notes)

    def score(self, model: Reader, examples: Sequence[Question], answers: Sequence[Prediction]) -> dict[str, Any]:
        """The share of questions whose most likely choice is the right one."""
        right = [
            question.choices[question.label or 0] == a.label for question, a in zip(examples, answers, strict=True)
        ]
        return {"examples": len(examples), "accuracy": sum(right) / len(right)}

    def judge(self, model: Reader, examples: Sequence[Question]) -> Judged:
        answers = self.answer(model, examples).answers
        accuracy = self.score(model, examples, answers)["accuracy"]
        return Judged(accuracy, {"accuracy": accuracy}, answers)

    def graded(self, examples: Sequence[Question], answers: Sequence[Prediction]) -> list[Graded]:
        return [one.graded(example.choices[example.label or 0]) for example, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Question], answers: Sequence[Prediction]) -> ProbabilityTable:
        rows = [[*one.probabilities.values()] for one in answers]
        return probability_table(rows, [example.label or 0 for example in examples])

    def groups(self, examples: Sequence[Question]) -> list[list[int]]:
        return same([question.about for question in examples])

    def notices(
        self, model: Reader, examples: Sequence[Question], dev: Sequence[Question], best: Judged | None
    ) -> list[str]:
        return []


def read(path: str | Path, *, labelled: bool = True) -> list[Question]:
    """The questions of a file. With `labelled`, every question must have a label."""
    path = Path(path)
    questions = [_question(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
    require(bool(questions), "{path} holds no examples: give a file with at least one example", path=path)
    return questions


def _question(row: dict[str, Any], where: str, labelled: bool) -> Question:
    context = _context(row, where)
    choices = row.get("choices")
    require(
        isinstance(choices, list) and all(map(_is_text, choices)),
        '{where}: an example needs "choices", a list of texts; got {choices!r:.60}',
        where=where,
        choices=choices,
    )
    assert isinstance(choices, list)
    require(
        len(choices) >= 2,
        "{where}: an example needs two choices or more, got {count_of_choices}",
        where=where,
        count_of_choices=len(choices),
    )
    require(
        len(set(choices)) == len(choices),
        ("{where}: two choices are the same text: remove or change one of them"),
        where=where,
    )
    require(
        not labelled or row.get("label") is not None,
        '{where}: the example has no "label": give the number of the right choice, or its text',
        where=where,
    )
    label = None if row.get("label") is None else choice_number(row["label"], choices, where)
    return Question(context, tuple(choices), label, where, row)


def _context(row: dict[str, Any], where: str) -> str:
    """The context followed by the question, or only one of them if the other is missing."""
    given = {name: row[name] for name in ("context", "text", "question") if row.get(name) is not None}
    for name, value in given.items():
        require(
            isinstance(value, str),
            '{where}: "{name}" must be a text, got {value!r:.60}',
            where=where,
            name=name,
            value=value,
        )
    filled = {name: value.strip() for name, value in given.items() if value.strip()}
    require(
        bool(filled),
        '{where}: an example needs "context" (or "text"), "question", or both, not empty; got the columns {row}',
        where=where,
        row=sorted(row),
    )
    parts = filled.get("context") or filled.get("text"), filled.get("question")
    return " ".join(part for part in parts if part)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def choice_number(label: Any, choices: Sequence[str], where: str) -> int:
    """The number of the right choice. A label is the text of a choice, or its number, counted from 0."""
    number = choices.index(label) if label in choices else label
    require(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(choices),
        ("{where}: the label must be the text of a choice or its number, 0 to {count_of_choices}; got {label!r:.60}"),
        where=where,
        count_of_choices=len(choices) - 1,
        label=label,
    )
    return int(number)
