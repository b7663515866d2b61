"""Multi: any number of labels for a text or a pair of texts. JSON lines with `text` and `labels`, a list."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask import metrics
from unmask.axes import Answered, Graded, Judged, Pretrained, ProbabilityTable, Reader
from unmask.data.examples import Laid
from unmask.errors import UserError, require
from unmask.predict.label import ANSWERS
from unmask.recipe import Recipe
from unmask.tasks._answers import Several
from unmask.tasks._calibrated import Calibrated, probability_table
from unmask.tasks._class_weights import yes_weights
from unmask.tasks._entity_marks import ENTITY, marked_text
from unmask.tasks._labelled import Columns, Example, described, read, read_unlabelled
from unmask.tasks._recipe import label_head, with_head
from unmask.tasks._texts import check_texts, examples_of, texts_in
from unmask.tasks._training import check_dropout

LABELS = "labels"  # the column, unless the user names another
NONE = "(no label)"  # in reports


@dataclass(frozen=True)
class LabelledText(Example):
    """A text or a pair of texts with any number of labels; `label` is not used."""

    labels: tuple[str, ...] | None = None  # None if labels are not read


@dataclass(frozen=True)
class Multi(Calibrated):
    """How a model learns which labels a text has: one yes or no for each label."""

    dropout: float = 0.1  # before the output layer
    # the vector of the summary token, or the mean over all tokens; none: the mean if no vector has read the whole text
    pool: Literal["summary", "mean"] | None = None
    # whether there is a dense layer before the output; none: the recipe's value if tokens see both sides, otherwise false
    pooler: bool | None = None
    activation: Literal["tanh", "gelu"] | None = None  # of that dense layer; none: the recipe's value
    mark: str | None = (
        None  # a column with the place of an entity: [ENT] is put around it, for entity typing; none: no marks
    )
    balance: bool = False  # weights that make the yes of a label count as much as its no, from the training examples
    weights: tuple[float, ...] = ()  # of a yes of each label; empty: all 1, or as `balance` computes them
    threshold: float = 0.5  # a label is given if its probability is at least this
    labels: tuple[str, ...] = ()  # the names of the labels; empty: those of the training examples, sorted
    texts: Literal[1, 2] | None = None  # texts per example; none: as in the training examples

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        require(
            0 < self.threshold < 1,
            "threshold must be in (0, 1), got {threshold}: with 0.5 a label is given if it is more likely than not",
            threshold=self.threshold,
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("text", LABELS), ("text_a", "text_b", LABELS))

    @property
    def special_tokens(self) -> dict[str, str]:
        return {} if self.mark is None else ENTITY

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("micro_f1",)

    @property
    def head(self) -> str:
        return "label"

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Example], Counter[str]]:
        if not labelled:
            return read_unlabelled(path, columns)
        column = _column(columns or Columns())
        return [_labelled(example, column) for example in read(path, columns, labelled=False)], Counter()

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        named = columns or Columns()
        return described(path, replace(named, label=_column(named)), labelled=labelled)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Example]:
        return examples_of(values, where)

    def learn(self, examples: Sequence[Example]) -> Multi:
        found = self.labels or tuple(sorted({label for example in examples for label in _labels(example)}))
        require(bool(found), "no training example has a label: give at least one")
        named = replace(self, labels=found, texts=self.texts or texts_in(examples[0].text))
        weights = yes_weights(self.balance, self.weights, named._table(map(_labels, examples)))
        return replace(named, balance=False, weights=weights)

    def check(self, examples: Sequence[Example], reader: str, *, labelled: bool = True) -> None:
        check_texts(examples, self.texts, reader)
        for number, example in enumerate(examples if labelled else (), 1):
            where = example.where or f"example {number:,} of {len(examples):,}"
            strange = [label for label in _labels(example) if label not in self.labels]
            if strange:
                raise UserError(
                    "{where}: no training example has the label {label!r}; the known labels are {known}",
                    where=where,
                    label=strange[0],
                    known=list(self.labels)[:20],
                )

    def recipe(self, base: Pretrained) -> Recipe:
        head = label_head(
            base, classes=len(self.labels), answer="classes", pool=self.pool, dropout=self.dropout, pooler=self.pooler,
            activation=self.activation, weights=self.weights,
        )  # fmt: skip
        changes = {"pool": head.pool, "pooler": head.pooler, "activation": head.activation if head.pooler else None}
        decided = self.decided(base.recipe, **changes)
        return with_head(base, decided, self.head, head, 0)

    def lay_out(self, examples: Sequence[Example], *, labelled: bool = True) -> Laid:
        readings = [example.text for example in examples]
        if self.mark is not None:
            readings = [marked_text(example.text, example.row, self.mark, example.where) for example in examples]
        return Laid(readings, answers={ANSWERS: self._table(map(_labels, examples)).astype(float)} if labelled else {})

    def baseline(self, examples: Sequence[Example]) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    def answer(self, model: Reader, examples: Sequence[Example]) -> Answered:
        """All labels that are likely enough, and the probability of every label."""
        self.check(examples, model.name, labelled=False)
        scores, notes = model.scores("scores of each class", self.lay_out(examples, labelled=False))
        return Answered([self._several(row) for row in scores], notes)

    def score(self, model: Reader, examples: Sequence[Example], answers: Sequence[Several]) -> dict[str, Any]:
        """Micro F1, macro F1, the share of examples with exactly the right labels, and the scores of each label."""
        truth, found = self._table(map(_labels, examples)), self._table(answer.labels for answer in answers)
        return metrics.several_labels(truth, found, self.labels)

    def judge(self, model: Reader, examples: Sequence[Example]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        return Judged(found["micro_f1"], {name: found[name] for name in ("micro_f1", "macro_f1", "exact")}, answers)

    def graded(self, examples: Sequence[Example], answers: Sequence[Several]) -> list[Graded]:
        """An answer is right if it has exactly the right labels. Its probability is that of all yes and no together."""
        return [self._graded(_labels(example), one) for example, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Example], answers: Sequence[Several]) -> ProbabilityTable:
        """A row for each label of each example: no and yes."""
        rows = [[1 - share, share] for one in answers for share in one.probabilities.values()]
        return probability_table(rows, self._table(map(_labels, examples)).flatten().astype(int).tolist())

    def relevance(self, answer: Several) -> float:
        """The probability of the last label, which must mean "yes"."""
        return answer.probabilities[self.labels[-1]]

    def notices(
        self, model: Reader, examples: Sequence[Example], dev: Sequence[Example], best: Judged | None
    ) -> list[str]:
        """A notice if the model gives no label to any text."""
        if best is None or any(answer.labels for answer in best.answers):
            return []
        return [
            "no dev text gets a label: train longer (--set epochs=...), set another rate, or lower the threshold (--set "
            "threshold=0.3)"
        ]

    def _graded(self, truth: tuple[str, ...], answer: Several) -> Graded:
        def share(labels: tuple[str, ...]) -> float:
            return math.prod(p if name in labels else 1 - p for name, p in answer.probabilities.items())

        words, right = (", ".join(sorted(set(labels))) or NONE for labels in (answer.labels, truth))
        return Graded(words, share(answer.labels), right, share(truth), set(answer.labels) == set(truth))

    def _table(self, several: Any) -> np.ndarray:
        """Examples x labels, True where an example has the label."""
        return np.array([[name in labels for name in self.labels] for labels in several], dtype=bool)

    def _several(self, scores: np.ndarray) -> Several:
        yes = 1 / (1 + np.exp(-self.scaled(scores.astype(np.float64))))
        shares = dict(zip(self.labels, yes.tolist(), strict=True))
        return Several(tuple(name for name, share in shares.items() if share >= self.threshold), shares)


def _column(columns: Columns) -> str:
    return LABELS if columns.label == Columns.label else columns.label


def _labels(example: Example) -> tuple[str, ...]:
    found: tuple[str, ...] | None = getattr(example, LABELS, None)
    require(
        found is not None,
        "{where}: the example has no labels: give a list, empty if the text has none",
        where=example.where or repr(example.text.a[:60]),
    )
    return found or ()


def _labelled(example: Example, column: str) -> LabelledText:
    value = _listed(example.row, column, example.where)
    wrong = next((one for one in value if isinstance(one, bool | float | list | dict) or not str(one).strip()), None)
    require(
        wrong is None,
        '{where}: a label is a word or a whole number, got {wrong!r:.60} in "{column}"',
        where=example.where,
        wrong=wrong,
        column=column,
    )
    names = tuple(str(one).strip() for one in value)
    require(
        len(set(names)) == len(names),
        '{where}: "{column}" has a label twice: {value!r:.60}',
        where=example.where,
        column=column,
        value=value,
    )
    return LabelledText(example.text, None, example.where, example.row, names)


def _listed(row: Mapping[str, Any], column: str, where: str) -> list[Any]:
    """The list of labels; in CSV it is written as JSON."""
    value = row.get(column)
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            pass  # the text itself is shown below
    require(
        isinstance(value, list),
        '{where}: an example needs "{column}", a list such as ["a", "b"], empty if the text has no label; got {value!r:.60}, '
        "and the columns are {known}",
        where=where,
        column=column,
        value=value,
        known=", ".join(map(repr, row)),
    )
    assert isinstance(value, list)
    return value
