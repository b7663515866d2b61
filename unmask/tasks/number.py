"""Number: a number for a text or a pair of texts, such as their similarity. JSON lines or CSV as for classify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask import metrics
from unmask.axes import Answered, Judged, Missed, Pretrained, Reader
from unmask.data.examples import Laid
from unmask.errors import UserError, require
from unmask.predict.label import ANSWERS
from unmask.recipe import Recipe
from unmask.tasks._answers import Number as Answer
from unmask.tasks._labelled import Columns, Example, all_fractions, described, read, read_unlabelled
from unmask.tasks._recipe import label_head, with_head
from unmask.tasks._rows import has_rows, read_rows
from unmask.tasks._texts import check_texts, examples_of, texts_in
from unmask.tasks._training import Training, check_dropout


@dataclass(frozen=True)
class Number(Training):
    """How a model learns to predict a number: the squared error of the standardised numbers is minimised."""

    dropout: float = 0.1  # before the output layer
    # the vector of the summary token, or the mean over all tokens; none: the mean if no vector has read the whole text
    pool: Literal["summary", "mean"] | None = None
    # whether there is a dense layer before the output; none: the recipe's value if tokens see both sides, otherwise false
    pooler: bool | None = None
    activation: Literal["tanh", "gelu"] | None = None  # of that dense layer; none: the recipe's value
    orders: Literal["one", "both"] = "one"  # both: a pair is read in both orders, and the two vectors are added
    # the network learns (number - mean) / deviation, so numbers of any size are learned at the same rate
    mean: float | None = None  # none: that of the training examples
    deviation: float | None = None  # none: that of the training examples
    texts: Literal[1, 2] | None = None  # texts per example; none: as in the training examples

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        require(
            self.deviation is None or self.deviation > 0,
            "deviation must be over 0, got {deviation}: leave it out",
            deviation=self.deviation,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("text", "label"), ("text_a", "text_b", "label"))

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("pearson",)

    @property
    def head(self) -> str:
        return "label"

    def knows(self, path: Path, columns: Any) -> bool:
        if not has_rows(path):
            return False
        row, named = next(read_rows(path), (0, {}))[1], columns or Columns()
        return {*named.texts_of(row), named.label} <= set(row) and all_fractions(path, columns)

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Example], Counter[str]]:
        if not labelled:
            return read_unlabelled(path, columns)
        name = (columns or Columns()).label
        found = read(path, columns, labelled=False)
        return [replace(example, label=_number(example.row, name, example.where)) for example in found], Counter()

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return described(path, columns, labelled=labelled)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Example]:
        return examples_of(values, where)

    def learn(self, examples: Sequence[Example]) -> Number:
        self.check(examples, "the first training example")
        numbers = np.array([_value(example) for example in examples])
        require(
            len(set(numbers.tolist())) > 1,
            "all {count:,} training examples have the number {number:g}: there is nothing to learn",
            count=len(numbers),
            number=numbers[0],
        )
        mean = float(numbers.mean()) if self.mean is None else self.mean
        deviation = float(numbers.std()) if self.deviation is None else self.deviation
        return replace(self, mean=mean, deviation=deviation, texts=self.texts or texts_in(examples[0].text))

    def check(self, examples: Sequence[Example], reader: str, *, labelled: bool = True) -> None:
        check_texts(examples, self.texts, reader)
        lacking = next((i for i, e in enumerate(examples) if labelled and e.label is None), None)
        if lacking is not None:
            where = examples[lacking].where or f"example {lacking + 1:,} of {len(examples):,}"
            raise UserError("{where}: the example has no number: give one as its label", where=where)

    def recipe(self, base: Pretrained) -> Recipe:
        head = label_head(
            base, classes=1, answer="number", pool=self.pool, dropout=self.dropout, pooler=self.pooler,
            activation=self.activation,
        )  # fmt: skip
        changes = {"pool": head.pool, "pooler": head.pooler, "activation": head.activation if head.pooler else None}
        decided = self.decided(base.recipe, **changes)
        return with_head(base, decided, self.head, head, 0)

    def lay_out(self, examples: Sequence[Example], *, labelled: bool = True) -> Laid:
        texts = [example.text for example in examples]
        readings = [text.orders for text in texts] if self.orders == "both" else texts
        if not labelled:
            return Laid(readings)
        numbers = np.array([_value(example) for example in examples])
        return Laid(readings, answers={ANSWERS: ((numbers - self._mean) / self._deviation)[:, None]})

    def baseline(self, examples: Sequence[Example]) -> dict[str, Any]:
        """The squared error of always giving the mean of the training examples."""
        error = float(np.mean([(_value(example) - self._mean) ** 2 for example in examples]))
        return {"baseline": {"label": f"{self._mean:.4g}", "mse": error}}

    def answer(self, model: Reader, examples: Sequence[Example]) -> Answered:
        self.check(examples, model.name, labelled=False)
        scores, notes = model.scores("numbers", self.lay_out(examples, labelled=False))
        return Answered([Answer(float(row[0]) * self._deviation + self._mean) for row in scores], notes)

    def score(self, model: Reader, examples: Sequence[Example], answers: Sequence[Answer]) -> dict[str, Any]:
        """Pearson's and Spearman's correlation, and the mean squared error."""
        truth, found = [_value(example) for example in examples], [answer.number for answer in answers]
        return {
            "examples": len(truth),
            "pearson": metrics.pearson(truth, found),
            "spearman": metrics.spearman(truth, found),
            "mse": float(np.mean((np.array(truth) - np.array(found)) ** 2)),
        }

    def judge(self, model: Reader, examples: Sequence[Example]) -> Judged:
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        return Judged(found["pearson"], {name: found[name] for name in ("pearson", "spearman", "mse")}, answers)

    def missed(self, examples: Sequence[Example], answers: Sequence[Answer]) -> list[Missed]:
        return [Missed(one.number, _value(example)) for example, one in zip(examples, answers, strict=True)]

    def relevance(self, answer: Answer) -> float:
        return answer.number

    def notices(
        self, model: Reader, examples: Sequence[Example], dev: Sequence[Example], best: Judged | None
    ) -> list[str]:
        return []

    @property
    def final_scale(self) -> tuple[float, float]:
        return self._deviation, self._mean

    @property
    def _mean(self) -> float:
        return 0.0 if self.mean is None else self.mean

    @property
    def _deviation(self) -> float:
        return 1.0 if self.deviation is None else self.deviation


def _value(example: Example) -> float:
    return float(str(example.label))


def _number(row: Mapping[str, Any], name: str, where: str) -> str:
    """The number of a row, checked."""
    require(
        name in row,
        "{where}: there is no column {name!r}; the columns are {known}: name the column of the number with --label NAME",
        where=where,
        name=name,
        known=", ".join(map(repr, row)),
    )
    try:
        number = math.nan if isinstance(row[name], bool) else float(row[name])
    except (TypeError, ValueError):
        number = math.nan
    require(
        math.isfinite(number),
        "{where}: the label must be a number, got {value!r:.60}: drop the row, or use --task classify for words",
        where=where,
        value=row[name],
    )
    return repr(number)
