"""Scores of predictions against the truth: labels by one confusion matrix, texts by overlap or by likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def confusion(truth: Sequence[int], predicted: Sequence[int], classes: int) -> np.ndarray:
    """Rows are the truth, columns the prediction."""
    table = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(table, (np.asarray(truth, dtype=np.int64), np.asarray(predicted, dtype=np.int64)), 1)
    return table


def accuracy(table: np.ndarray) -> float:
    return float(np.trace(table) / max(1, table.sum()))


def f1_per_class(table: np.ndarray) -> list[float]:
    """2 TP / (2 TP + FP + FN); 0 for a class that never occurs and is never predicted."""
    hits = np.diag(table)
    return (2 * hits / np.maximum(1, table.sum(0) + table.sum(1))).tolist()


def macro_f1(table: np.ndarray) -> float:
    """The mean F1 over the classes that occur or are predicted."""
    present = (table.sum(0) + table.sum(1)) > 0
    return float(np.mean(np.array(f1_per_class(table))[present])) if present.any() else 0.0


def mcc(table: np.ndarray) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004); 0 where it is undefined."""
    t, p = table.sum(1).astype(float), table.sum(0).astype(float)
    n, hits = t.sum(), float(np.trace(table))
    spread = math.sqrt((n**2 - (p**2).sum()) * (n**2 - (t**2).sum()))
    return (hits * n - float((t * p).sum())) / spread if spread else 0.0


def classification(truth: Sequence[int], predicted: Sequence[int], names: Sequence[str]) -> dict[str, object]:
    """All of it: accuracy, macro F1, MCC, F1 per class, the confusion matrix."""
    table = confusion(truth, predicted, len(names))
    return {
        "examples": int(table.sum()),
        "accuracy": accuracy(table),
        "f1": macro_f1(table),
        "mcc": mcc(table),
        "f1_per_class": dict(zip(names, f1_per_class(table), strict=True)),
        "labels": list(names),
        "confusion": table.tolist(),
    }


def rouge_l(truth: Sequence[int], written: Sequence[int]) -> float:
    """F1 of the longest common subsequence of two texts (Lin 2004)."""
    best = [0] * (len(written) + 1)
    for token in truth:
        before = 0
        for i, other in enumerate(written, 1):
            before, best[i] = best[i], before + 1 if token == other else max(best[i], best[i - 1])
    return 2 * best[-1] / max(1, len(truth) + len(written))


def perplexity(nats: float, count: int) -> float:
    """The number of equally likely guesses that would be as hard, for each of what is counted: tokens, words."""
    mean = nats / count
    return math.exp(mean) if mean < math.log(math.nextafter(math.inf, 0)) else math.inf


def bits_per(nats: float, count: int) -> float:
    """A loss in natural logarithms as bits for each of what is counted: bytes, characters."""
    return nats / math.log(2) / count
