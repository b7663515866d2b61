"""Embed: one vector per text, for search and comparison. The texts of an example are read apart by one network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from unmask import metrics
from unmask.axes import Answered, Graded, Judged, Missed, Pretrained, ProbabilityTable, Reader
from unmask.data.examples import Laid, Text
from unmask.errors import UserError, require
from unmask.predict import CosineLoss, InBatchLoss, PairClassLoss, TextVectors
from unmask.predict.label import ANSWERS
from unmask.predict.text_vectors import VECTORS, Pool
from unmask.predict.vector_losses import PAIRS
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.tasks._calibrated import Calibrated, table_of_labels
from unmask.tasks._class_weights import class_weights
from unmask.tasks._compared import Alone, Compared, read
from unmask.tasks._fitting_loss import Loss, are_numbers, check_loss, check_settings, loss_for
from unmask.tasks._labelled import label_names, label_numbers
from unmask.tasks._recipe import with_head
from unmask.tasks._vector_scores import retrieval, unit

SCALE = InBatchLoss().scale
_SHOWN = ("spearman", "mrr", "recall_at_1", "accuracy")  # scores on a dev set; the first one there is chooses the epoch


@dataclass(frozen=True)
class Similarity:
    """How alike two texts are."""

    cosine: float  # of the vectors of both, -1 to 1
    vectors: np.ndarray = field(compare=False, repr=False)  # K D, of all texts of the example

    def columns(self, top: int) -> dict[str, Any]:
        require(
            top == 1, "--top {top} asks for several answers, but two texts have one cosine: leave --top out", top=top
        )
        return {"cosine": round(self.cosine, 6)}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top)


@dataclass(frozen=True)
class Embed(Calibrated):
    """How a model learns one vector per text, by comparing texts."""

    # the vector of the summary token, the mean or the maximum over all tokens, or their mean with learned weights
    pool: Pool = "mean"
    # softmax: the class of a pair; cosine: the number of a pair; negatives: find the second text among those of the batch;
    # dropout: the same for a text and itself; neighbour: the same for a sentence and the next one; none: by the columns
    loss: Loss | None = None
    scale: float | None = None  # of cosines, for a loss that compares with the batch: 1 / temperature; none: 20
    dims: tuple[int, ...] = ()  # numbers of first dimensions that are trained as vectors of their own (Matryoshka)
    dropout: float | None = None  # of the network while it is trained; none: as it was pretrained
    labels: tuple[str, ...] = ()  # for softmax, the names of the classes; empty: those of the training examples, sorted
    # for softmax: weights that make rare classes count as much as frequent ones, from the training examples
    balance: bool = False
    weights: tuple[
        float, ...
    ] = ()  # for softmax, of the loss of each class; empty: all 1, or as `balance` computes them
    low: float | None = None  # for cosine, the number that is cosine 0; none: the lowest of the training examples
    high: float | None = None  # for cosine, the number that is cosine 1; none: the highest of the training examples

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.dropout is None or 0 <= self.dropout < 1,
            "dropout must be in [0, 1), got {dropout}",
            dropout=self.dropout,
        )
        require(self.scale is None or self.scale > 0, "scale must be over 0, got {scale}", scale=self.scale)
        require(
            self.low is None or self.high is None or self.low < self.high,
            "low must be below high, got {low} and {high}",
            low=self.low,
            high=self.high,
        )

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("anchor", "positive"),)

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("spearman", "mrr", "accuracy")

    @property
    def head(self) -> str:
        return "vectors"

    @property
    def has_temperature(self) -> bool:
        return self.loss == "softmax"

    @property
    def needs_dropout(self) -> bool:
        return self.loss == "dropout" or bool(self.dropout)

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Compared], Counter[str]]:
        alone: Alone | None = next((one for one in get_args(Alone) if one == self.loss), None)
        return read(path, columns, alone=alone, labelled=labelled)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Compared]:
        """Turn pairs of texts into examples. Values that are examples stay as they are."""
        names = where or [f"text number {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_given(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Compared]) -> Embed:
        """The task with the loss that fits the columns, and its classes or the range of its numbers."""
        loss = self.loss or loss_for(examples)
        check_loss(loss, examples, per_step=self.examples)
        given = {name: getattr(self, name) for name in ("labels", "weights", "low", "high", "scale")}
        usual = {"temperature": None if self.temperature == 1 else self.temperature, "balance": self.balance or None}
        check_settings(loss, given | usual)
        if loss == "softmax":
            return self._with_classes(examples)
        if loss != "cosine":
            return replace(self, loss=loss)
        found = [example.number for example in examples if example.number is not None]
        low, high = (
            given if given is not None else end for given, end in ((self.low, min(found)), (self.high, max(found)))
        )
        require(low < high, "all pairs have the number {low}: give pairs with different numbers", low=low)
        return replace(self, loss=loss, low=low, high=high)

    def _with_classes(self, examples: Sequence[Compared]) -> Embed:
        labels = self.labels or label_names(_as_labelled(examples))
        numbers = label_numbers(_as_labelled(examples), labels, "the examples")
        weights = class_weights(self.balance, self.weights, numbers, len(labels))
        return replace(self, loss="softmax", labels=labels, balance=False, weights=weights)

    def check(self, examples: Sequence[Compared], reader: str, *, labelled: bool = True) -> None:
        for number, example in enumerate(examples, 1):
            where = example.where or f"example {number:,} of {len(examples):,}"
            require(
                len(example.texts) >= 2,
                "{where}: two texts are compared, and there is one: give two, or make its vector with 'unmask embed'",
                where=where,
            )
            require(
                not labelled or example.label is None or self.loss == "softmax" or example.number is not None,
                "{where}: the label of a pair must be a number for {reader}, which has no classes (loss={loss}), got {label!r}",
                where=where,
                reader=reader,
                loss=self.loss,
                label=example.label,
            )
        if labelled and self._has_classes(examples):
            label_numbers(_as_labelled(examples), self.labels, "the examples")

    def recipe(self, base: Pretrained) -> Recipe:
        """The recipe of the model that makes vectors."""
        head = TextVectors(pool=self.pool, loss=self._loss(), dims=self.dims)
        made = with_head(base, self.decided(base.recipe), self.head, head, 0)
        if self.dropout is not None:
            made = override(made, [f"system.backbone.dropout={self.dropout}"])
        require(
            self.loss != "dropout" or _drops(made.system.backbone),
            "loss=dropout compares a text with itself under different dropout, but the network of {folder} has dropout 0: "
            "set dropout=0.1",
            folder=base.folder,
        )
        return made

    def _loss(self) -> PairClassLoss | CosineLoss | InBatchLoss:
        if self.loss == "softmax":
            return PairClassLoss(classes=len(self.labels), weights=self.weights)
        return CosineLoss() if self.loss == "cosine" else InBatchLoss(scale=self.scale or SCALE)

    def lay_out(self, examples: Sequence[Compared], *, labelled: bool = True) -> Laid:
        """A row for each text."""
        readings = [tuple(Text(text) for text in example.texts) for example in examples]
        if not labelled or examples[0].label is None or self._only_cosines(examples):
            return Laid(readings)
        if self.loss == "softmax":
            return Laid(readings, label_numbers(_as_labelled(examples), self.labels, "the examples"))
        low, high = self._range
        numbers = np.array([((example.number or 0.0) - low) / (high - low) for example in examples])
        return Laid(readings, answers={ANSWERS: numbers[:, None]})

    def baseline(self, examples: Sequence[Compared]) -> dict[str, Any]:
        """For classes, the accuracy of always giving the most frequent one."""
        if not self._has_classes(examples):
            return {}
        numbers = label_numbers(_as_labelled(examples), self.labels, "the examples")
        return {"labels": list(self.labels), "baseline": metrics.majority(numbers, self.labels)}

    def answer(self, model: Reader, examples: Sequence[Compared]) -> Answered:
        """The class of each pair if there are classes, otherwise the cosine of its two vectors."""
        self.check(examples, model.name, labelled=False)
        laid = self.lay_out(examples, labelled=False)
        if self.loss == "softmax" and not self._only_cosines(examples):
            scores, notes = model.scores(PAIRS, laid)
            return Answered([self.predicted(self.labels, row) for row in scores], notes)
        vectors, notes = model.scores(VECTORS, laid)
        return Answered([_similarity(example, rows) for example, rows in zip(examples, vectors, strict=True)], notes)

    def score(self, model: Reader, examples: Sequence[Compared], answers: Sequence[Any]) -> dict[str, Any]:
        """For classes as `Classify`; for numbers the correlation of the cosines with them; otherwise recall at 1 and MRR."""
        if self._has_classes(examples):
            truth = label_numbers(_as_labelled(examples), self.labels, "the examples")
            return dict(metrics.classification(truth, [self.labels.index(one.label) for one in answers], self.labels))
        require(
            self.loss != "softmax" or examples[0].label is not None,
            "{name} was trained with classes of pairs, and the examples have no label: give pairs with a label",
            name=model.name,
        )
        if examples[0].label is None:
            found = retrieval([example.texts for example in examples], [one.vectors for one in answers])
            return {"examples": len(examples)} | found
        cosines = np.array([one.cosine for one in answers])
        numbers = np.array([example.number for example in examples], np.float64)
        return {
            "examples": len(examples),
            "spearman": metrics.spearman(cosines, numbers),
            "pearson": metrics.pearson(cosines, numbers),
        }

    def judge(self, model: Reader, examples: Sequence[Compared]) -> Judged:
        """Uses the accuracy, Spearman's correlation or the MRR; for texts alone that are compared with themselves, the loss."""
        if examples[0].label is None and all(example.texts[0] == example.texts[1] for example in examples):
            (loss,) = model.losses(self.lay_out(examples)).values()
            return Judged(-loss, {"loss": loss})
        answers = self.answer(model, examples).answers
        found = self.score(model, examples, answers)
        shown: dict[str, float] = {name: found[name] for name in _SHOWN if name in found}
        return Judged(next(iter(shown.values())), shown, answers)

    def graded(self, examples: Sequence[Compared], answers: Sequence[Any]) -> list[Graded]:
        if not self._has_classes(examples):
            return []
        return [one.graded(str(example.label)) for example, one in zip(examples, answers, strict=True)]

    def probability_table(self, examples: Sequence[Compared], answers: Sequence[Any]) -> ProbabilityTable | None:
        return table_of_labels(self.labels, self.kinds(examples), answers) if self._has_classes(examples) else None

    def missed(self, examples: Sequence[Compared], answers: Sequence[Any]) -> list[Missed]:
        """For pairs with numbers: the cosine in the range of the numbers, and the number."""
        if self.loss != "cosine" or not examples or examples[0].number is None:
            return []
        low, high = self._range
        given = [example.number or 0.0 for example in examples]
        return [Missed(low + one.cosine * (high - low), truth) for one, truth in zip(answers, given, strict=True)]

    def relevance(self, answer: Any) -> float | None:
        """The probability of the last class, which must mean "yes"; vectors of two texts are compared by an index."""
        return float(answer.probabilities[self.labels[-1]]) if self.loss == "softmax" else None

    def kinds(self, examples: Sequence[Compared]) -> Sequence[str]:
        return [str(example.label) for example in examples] if self._has_classes(examples) else super().kinds(examples)

    def notices(
        self, model: Reader, examples: Sequence[Compared], dev: Sequence[Compared], best: Judged | None
    ) -> list[str]:
        return []

    @property
    def _range(self) -> tuple[float, float]:
        """The numbers that are cosine 0 and cosine 1."""
        return self.low or 0.0, 1.0 if self.high is None else self.high

    def _has_classes(self, examples: Sequence[Compared]) -> bool:
        given = bool(examples) and examples[0].label is not None
        return self.loss == "softmax" and given and not self._only_cosines(examples)

    def _only_cosines(self, examples: Sequence[Compared]) -> bool:
        """Whether a model with classes is scored on pairs with numbers, by the cosines of its vectors (Sentence-BERT)."""
        if self.loss != "softmax" or not examples or examples[0].label is None:
            return False
        return are_numbers(examples) and not {example.label for example in examples} & {*self.labels}


def _similarity(example: Compared, rows: np.ndarray) -> Similarity:
    """The answer to an example. Rows beyond its last text are unused: another example of the batch has more texts."""
    own = rows[: len(example.texts)]
    a, b = unit(own[:2].astype(np.float64))
    return Similarity(float(a @ b), own)


def _as_labelled(examples: Sequence[Compared]) -> Any:
    return examples  # `label_numbers` reads the label and the place of an example, which these have too


def _drops(backbone: Any) -> bool:
    """Whether any dropout of a network is over 0."""
    return any(value for name, value in vars(backbone).items() if name.endswith("dropout"))


def _given(value: Any, where: str) -> Compared:
    if isinstance(value, Compared):
        return value
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, tuple | list) else ()
    if len(texts) < 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UserError(
            "{where}: this model compares two texts, got {value!r:.60}: give a pair, or make vectors with 'unmask embed'",
            where=where,
            value=value,
        )
    return Compared(texts, None, where, {"text_a": texts[0], "text_b": texts[1]})
