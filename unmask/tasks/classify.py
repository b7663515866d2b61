"""Classify: one label for a text or a pair of texts. JSON lines or CSV with `text` (or `text_a`, `text_b`) and `label`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from unmask import metrics
from unmask.axes import Answered, Curve, Graded, Judged, Pretrained, ProbabilityTable, Reader
from unmask.data.examples import Laid
from unmask.errors import require
from unmask.predict import AnswerSteps, San
from unmask.recipe import Recipe
from unmask.tasks._answers import Prediction
from unmask.tasks._calibrated import Calibrated, table_of_labels
from unmask.tasks._class_weights import class_weights
from unmask.tasks._entity_marks import ENTITY, marked_text
from unmask.tasks._labelled import (
    Columns,
    Example,
    all_fractions,
    described,
    label_names,
    label_numbers,
    read,
    read_unlabelled,
)
from unmask.tasks._recipe import label_head, weight_of_language, with_head
from unmask.tasks._texts import check_texts, examples_of, texts_in
from unmask.tasks._training import check_dropout, check_language, check_stride

__all__ = ["Classify", "Columns", "Example", "described", "label_numbers", "read"]

SOME: Final = 256  # training examples whose labels are predicted after training if there is no dev set

STRIDE = 0.5  # the usual share of a window by which windows advance


@dataclass(frozen=True)
class Classify(Calibrated):
    """How a model is adapted to classification."""

    dropout: float = 0.1  # before the output layer
    # the vector of the summary token; the mean or the largest values over all tokens; or all three, side by side (ULMFiT);
    # none: summary, but mean for a network in which no vector has read the whole text (ELMo)
    pool: Literal["summary", "mean", "max", "concat"] | None = None
    # whether there is a dense layer before the output; none: the recipe's value if tokens see both sides, otherwise false
    pooler: bool | None = None
    activation: Literal["tanh", "gelu"] | None = None  # of that dense layer; none: the recipe's value
    orders: Literal["one", "both"] = "one"  # both: a pair is read in both orders, and the two vectors are added (GPT)
    # weight of the loss of the next token, which is added to the loss of the label; none: the recipe's value
    language: float | Curve | None = None
    # a text that is too long is cut, or read in windows: the mean of their vectors is classified
    long: Literal["cut", "strides"] = "cut"
    stride: float = STRIDE  # windows advance by this share of a window
    mark: str | None = (
        None  # a column with the place of an entity: [ENT] is put around it, for entity typing; none: no marks
    )
    balance: bool = False  # weights that make rare labels count as much as frequent ones, from the training examples
    weights: tuple[float, ...] = ()  # of the loss of each label; empty: all 1, or as `balance` computes them
    # for pairs: a stochastic answer network, which reads both texts in several steps (MT-DNN); none: one output layer
    san: AnswerSteps | None = None
    labels: tuple[str, ...] = ()  # the names of the classes; empty: the labels of the training examples, sorted
    texts: Literal[1, 2] | None = None  # texts per example; none: as in the training examples, or not known

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dropout(self.dropout)
        check_language(self.language)
        check_stride(self.stride)
        require(
            self.long == "strides" or self.stride == STRIDE,
            "stride={stride} has no effect on texts that are cut: set long=strides too, or leave stride out",
            stride=self.stride,
        )
        require(
            self.san is None
            or (self.orders == "one" and self.long == "cut" and self.pool in (None, "summary") and not self.pooler),
            "a stochastic answer network (san) reads the tokens of a pair once: leave orders, long, pool and pooler out, or set san=none",
        )
        require(
            self.long == "cut" or self.orders == "one",
            "long=strides and orders=both cannot be combined: a pair is read in both orders, or in windows; leave one out",
        )

    def knows(self, path: Path, columns: Any) -> bool:
        return super().knows(path, columns) and not all_fractions(path, columns)

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("text", "label"), ("text_a", "text_b", "label"))

    @property
    def special_tokens(self) -> dict[str, str]:
        return {} if self.mark is None else ENTITY

    @property
    def predicts_next(self) -> bool:
        return True

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("accuracy",)

    @property
    def head(self) -> str:
        return "label"

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Example], Counter[str]]:
        return (read(path, columns), Counter()) if labelled else read_unlabelled(path, columns)

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return described(path, columns, labelled=labelled)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Example]:
        """Turn texts and pairs of texts into examples. Values that are examples stay as they are."""
        return examples_of(values, where)

    def learn(self, examples: Sequence[Example]) -> Classify:
        names = self.labels or label_names(examples)
        unnamed = sorted({str(example.label) for example in examples} - {*names})
        require(
            not unnamed,
            "labels={names} does not name all labels of the training examples: add {unnamed}, or leave labels out",
            names=names,
            unnamed=", ".join(map(repr, unnamed[:5])),
        )
        numbers = label_numbers(examples, names, "the examples")
        weights = class_weights(self.balance, self.weights, numbers, len(names))
        texts = self.texts or texts_in(examples[0].text)
        require(
            self.san is None or texts == 2,
            'a stochastic answer network (san) compares two texts, and an example has one: give "text_a" and "text_b", or set san=none',
        )
        return replace(self, labels=names, texts=texts, balance=False, weights=weights)

    def among_many(self, *, pairs: AnswerSteps | None, lists: int | None) -> Classify:
        chosen = self.orders == "both" or self.long == "strides" or self.pool not in (None, "summary") or self.pooler
        return self if self.texts != 2 or self.san is not None or chosen else replace(self, san=pairs)

    def check(self, examples: Sequence[Example], reader: str, *, labelled: bool = True) -> None:
        check_texts(examples, self.texts, reader)
        if labelled:
            label_numbers(examples, self.labels, "the examples")

    def recipe(self, base: Pretrained) -> Recipe:
        """The recipe of the model that predicts the label. If `language` is not 0, it also predicts the next token."""
        language = weight_of_language(base, self.language)
        if self.san is not None:
            net = San(classes=len(self.labels), steps=self.san, dropout=self.dropout, weights=self.weights)
            return with_head(base, self.decided(base.recipe, language=language), self.head, net, language)
        head = label_head(
            base, classes=len(self.labels), pool=self.pool, dropout=self.dropout, pooler=self.pooler,
            activation=self.activation, windows=self.long == "strides", weights=self.weights,
        )  # fmt: skip
        task = self.decided(
            base.recipe, language=language, pool=head.pool, pooler=head.pooler,
            activation=head.activation if head.pooler else None,
        )  # fmt: skip
        return with_head(base, task, self.head, head, language)

    def lay_out(self, examples: Sequence[Example], *, labelled: bool = True) -> Laid:
        texts = [example.text for example in examples]
        if self.mark is not None:
            texts = [marked_text(example.text, example.row, self.mark, example.where) for example in examples]
        readings = [text.orders for text in texts] if self.orders == "both" else texts
        numbers = label_numbers(examples, self.labels, "the examples") if labelled else ()
        return Laid(readings, numbers, stride=self.stride if self.long == "strides" else None, windows="together")

    def baseline(self, examples: Sequence[Example]) -> dict[str, Any]:
        """The labels, and the accuracy of always giving the most frequent one."""
        numbers = label_numbers(examples, self.labels, "the examples")
        return {"labels": list(self.labels), "baseline": metrics.majority(numbers, self.labels)}

    def answer(self, model: Reader, examples: Sequence[Example]) -> Answered:
        """The most likely label of each example, and the probability of every label."""
        self.check(examples, model.name, labelled=False)
        scores, notes = model.scores("class scores", self.lay_out(examples, labelled=False))
        return Answered([self.predicted(self.labels, row) for row in scores], notes)

    def score(self, model: Reader, examples: Sequence[Example], answers: Sequence[Prediction]) -> dict[str, Any]:
        """Accuracy, accuracy of the majority label, macro F1, MCC, scores per label and the confusion matrix."""
        truth = label_numbers(examples, self.labels, "the examples")
        return dict(metrics.classification(truth, self._numbers(answers), self.labels))

    def judge(self, model: Reader, examples: Sequence[Example]) -> Judged:
        answers = self.answer(model, examples).answers
        predicted = self._numbers(answers)
        table = metrics.confusion(label_numbers(examples, self.labels, "dev"), predicted, len(self.labels))
        accuracy = metrics.accuracy(table)
        scores = {"accuracy": accuracy, "macro_f1": metrics.macro_f1(table), "labels": len(set(predicted))}
        return Judged(accuracy, scores, answers)

    def graded(self, examples: Sequence[Example], answers: Sequence[Prediction]) -> list[Graded]:
        return [one.graded(str(example.label)) for example, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Example], answers: Sequence[Prediction]) -> ProbabilityTable:
        return table_of_labels(self.labels, self.kinds(examples), answers)

    def relevance(self, answer: Prediction) -> float:
        """The probability of the last label, which must mean "yes"."""
        return answer.probabilities[self.labels[-1]]

    def kinds(self, examples: Sequence[Example]) -> list[str]:
        return [str(example.label) for example in examples]

    def notices(
        self, model: Reader, examples: Sequence[Example], dev: Sequence[Example], best: Judged | None
    ) -> list[str]:
        """A notice if the model gives the same label to all texts."""
        predicted = self._numbers(best.answers if dev and best else self.answer(model, examples[:SOME]).answers)
        if len(set(predicted)) != 1 or len({example.label for example in dev or examples}) == 1:
            return []
        return [
            f"one label is predicted for all {len(predicted):,} {'dev' if dev else 'training'} texts: "
            f"{self.labels[predicted[0]]!r}; the model has not learned to distinguish the labels: train longer (--set "
            "epochs=...), set another rate, or adapt a model with more pretraining"
        ]

    def _numbers(self, answers: Sequence[Prediction]) -> list[int]:
        return [self.labels.index(answer.label) for answer in answers]
