"""Relation: the class of two marked entities of a text. JSON lines with `text` (or `tokens`), `head`, `tail`, `label`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unmask import metrics
from unmask.axes import Answered, Graded, Judged, Pretrained, ProbabilityTable, Reader
from unmask.data.examples import Laid, Text
from unmask.data.marks import Mark, Marks
from unmask.errors import UserError, require
from unmask.predict import Relation as Head
from unmask.predict.relation import ENTITIES
from unmask.recipe import Recipe
from unmask.tasks._answers import Prediction
from unmask.tasks._calibrated import Calibrated, table_of_labels
from unmask.tasks._class_weights import class_weights
from unmask.tasks._entity_marks import HEAD, TAIL, with_marks
from unmask.tasks._labelled import fixed
from unmask.tasks._recipe import usual_pool, with_head
from unmask.tasks._rows import read_rows
from unmask.tasks._sentences import Sentence
from unmask.tasks._training import check_dropout


@dataclass(frozen=True)
class Related:
    """A text with two marked entities, and their relation."""

    text: str
    head: tuple[int, int]  # the first character of the entity, and the one after its last
    tail: tuple[int, int]
    label: str | None = None  # the relation; None if it is not known
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def shown(self) -> tuple[str, ...]:
        return (f"{self.text} [{self.text[slice(*self.head)]} / {self.text[slice(*self.tail)]}]",)


@dataclass(frozen=True)
class Relation(Calibrated):
    """How a model learns relations: from the summary token and the mean vectors of both entities."""

    dropout: float = 0.1  # before each layer of the head
    marks: bool = False  # the tokens [HD] and [TL] are put around the two entities (ERNIE of Tsinghua)
    balance: bool = False  # weights that make rare relations count as much as frequent ones, from the training examples
    weights: tuple[float, ...] = ()  # of the loss of each relation; empty: all 1, or as `balance` computes them
    labels: tuple[str, ...] = ()  # the names of the relations; empty: those of the training examples, sorted

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("text", "head", "tail", "label"), ("tokens", "head", "tail", "label"))

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("macro_f1",)

    @property
    def head(self) -> str:
        return "relation"

    @property
    def special_tokens(self) -> dict[str, str]:
        return HEAD | TAIL if self.marks else {}

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Related], Counter[str]]:
        fixed(columns, "find relations")
        found = [_related(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
        require(bool(found), "{path} holds no examples: give a file with at least one example", path=path)
        return found, Counter()

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Related]:
        for value in values:
            require(
                isinstance(value, Related),
                'this model reads a text with two marked entities, got {value!r:.60}: give a .jsonl file with "text", "head" '
                'and "tail" (in Python, give a Related)',
                value=value,
            )
        return list(values)

    def learn(self, examples: Sequence[Related]) -> Relation:
        found = self.labels or tuple(sorted({one.label for one in examples if one.label is not None}))
        require(len(found) >= 2, "relations need two labels or more, but the examples have {found}", found=list(found))
        named = replace(self, labels=found)
        named.check(examples, "the first training example")
        weights = class_weights(self.balance, self.weights, named._numbers(examples), len(found))
        return replace(named, balance=False, weights=weights)

    def check(self, examples: Sequence[Related], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, one in enumerate(examples) if labelled and one.label not in self.labels), None)
        if wrong is not None:
            raise UserError(
                "{where}: no training example has the label {label!r}; the known labels are {known}",
                where=examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}",
                label=examples[wrong].label,
                known=list(self.labels)[:20],
            )

    def recipe(self, base: Pretrained) -> Recipe:
        head = Head(classes=len(self.labels), pool=usual_pool(base), dropout=self.dropout, weights=self.weights)
        return with_head(base, self.decided(base.recipe), self.head, head, 0)

    def lay_out(self, examples: Sequence[Related], *, labelled: bool = True) -> Laid:
        texts, places = [one.text for one in examples], [(one.head, one.tail) for one in examples]
        if self.marks:
            pairs = [
                with_marks(one.text, list(zip(self.special_tokens, (one.head, one.tail), strict=True)))
                for one in examples
            ]
            texts, places = [text for text, _ in pairs], [(head, tail) for _, (head, tail) in pairs]
        marks = [Marks(name, [[_mark(two[i])] for two in places], on="all") for i, name in enumerate(ENTITIES)]
        return Laid([Text(text) for text in texts], self._numbers(examples) if labelled else (), marks=marks)

    def baseline(self, examples: Sequence[Related]) -> dict[str, Any]:
        """The labels, and the accuracy of always giving the most frequent one."""
        return {"labels": list(self.labels), "baseline": metrics.majority(self._numbers(examples), self.labels)}

    def answer(self, model: Reader, examples: Sequence[Related]) -> Answered:
        """The most likely relation of each example, and the probability of every relation."""
        scores, notes = model.scores("relation scores", self.lay_out(examples, labelled=False))
        return Answered([self.predicted(self.labels, row) for row in scores], notes)

    def score(self, model: Reader, examples: Sequence[Related], answers: Sequence[Prediction]) -> dict[str, Any]:
        """Macro F1, accuracy, scores per relation and the confusion matrix."""
        found = [self.labels.index(answer.label) for answer in answers]
        return dict(metrics.classification(self._numbers(examples), found, self.labels))

    def judge(self, model: Reader, examples: Sequence[Related]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        return Judged(found["macro_f1"], {name: found[name] for name in ("macro_f1", "accuracy")}, answers)

    def graded(self, examples: Sequence[Related], answers: Sequence[Prediction]) -> list[Graded]:
        return [one.graded(str(example.label)) for example, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Related], answers: Sequence[Prediction]) -> ProbabilityTable:
        return table_of_labels(self.labels, self.kinds(examples), answers)

    def kinds(self, examples: Sequence[Related]) -> list[str]:
        return [str(example.label) for example in examples]

    def notices(
        self, model: Reader, examples: Sequence[Related], dev: Sequence[Related], best: Judged | None
    ) -> list[str]:
        return []

    def _numbers(self, examples: Sequence[Related]) -> list[int]:
        return [self.labels.index(str(one.label)) for one in examples]


def _related(row: Mapping[str, Any], where: str, labelled: bool) -> Related:
    words = row.get("tokens")
    # a word may be blank (FewRel has some): the numbers of the words after it must not change
    given = isinstance(words, list) and bool(words) and all(isinstance(word, str) and word for word in words)
    text = Sentence(tuple(words)).text if given and isinstance(words, list) else row.get("text")
    require(
        isinstance(text, str) and bool(text.strip()),
        '{where}: an example needs "text", a text that is not empty, or "tokens", a list of words that are not empty; the columns are {known}',
        where=where,
        known=", ".join(map(repr, row)),
    )
    places = Sentence(tuple(words)).places if given and isinstance(words, list) else None
    head, tail = (_place(row.get(name), name, str(text), places, where) for name in ENTITIES)
    label = row.get("label") if labelled else None
    require(
        not labelled or (isinstance(label, str | int) and str(label).strip() != ""),
        '{where}: an example needs "label", a word or a whole number, got {label!r:.60}',
        where=where,
        label=label,
    )
    return Related(str(text), head, tail, None if label is None else str(label), where, row)


def _place(value: Any, name: str, text: str, words: Sequence[Mark] | None, where: str) -> tuple[int, int]:
    """The characters of an entity. In `tokens`, an entity is given by the numbers of its words."""
    if isinstance(value, dict) and isinstance(value.get("positions"), list) and value["positions"] and words:
        numbers = value["positions"][0]  # an entity may occur several times: the first place is read
        first = numbers[0] if isinstance(numbers, list) and numbers else None
        last = numbers[-1] + 1 if isinstance(first, int) and isinstance(numbers[-1], int) else None
    elif isinstance(value, dict):
        first, last = value.get("start"), value.get("end")
    else:
        first, last = value if isinstance(value, list) and len(value) == 2 else (None, None)
    length, unit = (len(words), "word") if words is not None else (len(text), "character")
    require(
        isinstance(first, int) and isinstance(last, int) and 0 <= first < last <= length,
        '{where}: "{name}" must be [start, end] or {{"start": ..., "end": ...}}: the number of its first {unit}, and the number '
        "after its last, in 0 to {length}; got {value!r:.60}",
        where=where,
        name=name,
        unit=unit,
        length=length,
        value=value,
    )
    assert isinstance(first, int)
    assert isinstance(last, int)
    found = (words[first].start, words[last - 1].end) if words is not None else (first, last)
    require(
        bool(text[slice(*found)].strip()),
        '{where}: "{name}" is {value!r:.60}, where the text has only spaces: give the {unit}s of the entity',
        where=where,
        name=name,
        value=value,
        unit=unit,
    )
    return found


def _mark(place: tuple[int, int]) -> Mark:
    return Mark(place[0], place[1], 0)
