"""The temperature of tasks whose answers have probabilities: 'unmask calibrate' sets it, and it is applied here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unmask import metrics
from unmask.axes import ProbabilityTable
from unmask.errors import require
from unmask.tasks._answers import Prediction
from unmask.tasks._training import Training


@dataclass(frozen=True)
class Calibrated(Training):
    """The settings of a task whose answers have probabilities."""

    temperature: float = 1.0  # scores are divided by it, so that probabilities are right; 'unmask calibrate' sets it

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.temperature > 0,
            "temperature must be over 0, got {temperature}: 1 leaves probabilities as they are",
            temperature=self.temperature,
        )

    @property
    def has_temperature(self) -> bool:
        return True

    @property
    def final_scale(self) -> tuple[float, float]:
        return 1 / self.temperature, 0.0

    def scaled(self, scores: np.ndarray) -> np.ndarray:
        """The scores of which probabilities are made."""
        return scores / self.temperature

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each of some answers, of which one is right."""
        return metrics.softmax(self.scaled(scores))

    def predicted(self, names: Sequence[str], scores: np.ndarray) -> Prediction:
        """The most likely of some answers."""
        shares = self.shares(scores)
        return Prediction(names[int(shares.argmax())], dict(zip(names, shares.tolist(), strict=True)))


def table_of_labels(labels: Sequence[str], truth: Sequence[str], answers: Sequence[Prediction]) -> ProbabilityTable:
    """The probabilities of all classes, for each example. `truth`: its right class."""
    rows = [[one.probabilities[name] for name in labels] for one in answers]
    return probability_table(rows, [labels.index(name) for name in truth])


def probability_table(rows: Sequence[Sequence[float]], truth: Sequence[int]) -> ProbabilityTable:
    """A table of rows that may have different lengths. `truth`: the place of the right answer in each row; -1: none."""
    table = np.zeros((len(rows), max(map(len, rows), default=0)))
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return ProbabilityTable(table, np.array(truth, np.int64))
