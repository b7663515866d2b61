"""Metrics: scores for labels from a confusion matrix, and for texts by overlap or by likelihood."""

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


def per_class(table: np.ndarray, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and support (number of true examples) of each class; 0 if a score is undefined."""
    hits, truth, predicted = np.diag(table), table.sum(1), table.sum(0)
    scores = {
        "precision": hits / np.maximum(1, predicted),
        "recall": hits / np.maximum(1, truth),
        "f1": 2 * hits / np.maximum(1, truth + predicted),
        "support": truth,
    }
    return {name: {score: values[i].item() for score, values in scores.items()} for i, name in enumerate(names)}


def macro_f1(table: np.ndarray) -> float:
    """The mean F1 over the classes that occur or are predicted; every class has the same weight."""
    both = table.sum(0) + table.sum(1)
    return float(np.mean((2 * np.diag(table) / np.maximum(1, both))[both > 0])) if both.any() else 0.0


def majority(truth: Sequence[int], names: Sequence[str]) -> dict[str, object]:
    """The most frequent class, and the accuracy of always predicting it."""
    counts = np.bincount(np.asarray(truth, dtype=np.int64), minlength=len(names))
    return {"label": names[int(counts.argmax())], "accuracy": float(counts.max() / max(1, counts.sum()))}


def worst_confusions(table: np.ndarray, names: Sequence[str], count: int = 10) -> list[dict[str, object]]:
    """The most frequent mistakes, each with its count."""
    wrong = table - np.diag(np.diag(table))
    order = np.argsort(-wrong, axis=None, kind="stable")[:count]
    pairs = [divmod(int(place), len(names)) for place in order]
    return [{"truth": names[t], "predicted": names[p], "count": int(wrong[t, p])} for t, p in pairs if wrong[t, p]]


def mcc(table: np.ndarray) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004); 0 if it is undefined."""
    t, p = table.sum(1).astype(float), table.sum(0).astype(float)
    n, hits = t.sum(), float(np.trace(table))
    spread = math.sqrt((n**2 - (p**2).sum()) * (n**2 - (t**2).sum()))
    return (hits * n - float((t * p).sum())) / spread if spread else 0.0


def classification(truth: Sequence[int], predicted: Sequence[int], names: Sequence[str]) -> dict[str, object]:
    """All metrics of a classification: accuracy, accuracy of the majority class, macro F1, MCC, scores per class, the
    confusion matrix."""
    table = confusion(truth, predicted, len(names))
    return {
        "examples": int(table.sum()),
        "accuracy": accuracy(table),
        "majority": majority(truth, names),
        "macro_f1": macro_f1(table),
        "mcc": mcc(table),
        "per_class": per_class(table, names),
        "worst_confusions": worst_confusions(table, names),
        "labels": list(names),
        "confusion": table.tolist(),
    }


def softmax(scores: np.ndarray) -> np.ndarray:
    """The softmax of some scores, as float32."""
    shares = np.exp(scores.astype(np.float64) - scores.max())
    return np.asarray(shares / shares.sum(), dtype=np.float32)


def perplexity(nats: float, count: int) -> float:
    """Perplexity per token or word: exp of the mean negative log-likelihood. `count`: the number of tokens or words."""
    mean = nats / count
    return math.exp(mean) if mean < math.log(math.nextafter(math.inf, 0)) else math.inf


def bits_per(nats: float, count: int) -> float:
    """Bits per byte or character, from a loss in nats. `count`: the number of bytes or characters."""
    return nats / math.log(2) / count


def pearson(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Pearson's correlation; 0 if it is undefined, because all numbers of one side are equal."""
    x, y = (np.asarray(values, np.float64) - np.mean(values) for values in (a, b))
    spread = math.sqrt(float((x**2).sum()) * float((y**2).sum()))
    return float((x * y).sum()) / spread if spread else 0.0


def spearman(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """Spearman's correlation: Pearson's of the ranks. Equal numbers have the mean of their ranks."""
    return pearson(_ranks(a), _ranks(b))


def _ranks(values: Sequence[float] | np.ndarray) -> list[float]:
    _, number, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    means: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return [float(rank) for rank in means[number]]


def several_labels(truth: np.ndarray, predicted: np.ndarray, names: Sequence[str]) -> dict[str, object]:
    """The metrics of examples with any number of labels. `truth`, `predicted`: examples x labels, True where one is given."""
    right, given, wanted = (truth & predicted).sum(0), predicted.sum(0), truth.sum(0)
    f1 = 2 * right / np.maximum(1, given + wanted)
    per_class = {
        name: {
            "precision": float(right[i] / max(1, given[i])),
            "recall": float(right[i] / max(1, wanted[i])),
            "f1": float(f1[i]),
            "support": int(wanted[i]),
        }
        for i, name in enumerate(names)
    }
    return {
        "examples": len(truth),
        "micro_f1": float(2 * right.sum() / max(1, given.sum() + wanted.sum())),
        "macro_f1": float(f1.mean()),
        "exact": float((truth == predicted).all(1).mean()),
        "per_type": per_class,
    }


def ranking(scores: Sequence[float], relevance: Sequence[float], first: int = 10) -> dict[str, float]:
    """The metrics of one query: reciprocal rank, average precision and nDCG of the `first` candidates.

    A relevance over 0 is relevant. The gain of a candidate is its relevance. Equal scores keep the order of the candidates."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    gains = np.asarray(relevance, np.float64)[order]
    places = np.flatnonzero(gains > 0) + 1
    weights = 1 / np.log2(np.arange(2, len(gains) + 2))
    best = np.sort(gains)[::-1]
    return {
        "mrr": float(1 / places[0]),
        "map": float(np.mean(np.arange(1, len(places) + 1) / places)),
        f"ndcg_{first}": float((gains * weights)[:first].sum() / (best * weights)[:first].sum()),
    }
