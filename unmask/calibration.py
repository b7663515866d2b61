"""Calibration: whether a model that is 80% sure is right in 80% of the cases, and how to correct it (Guo et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

BINS = 10
WIDEST = math.log(20.0)  # temperatures from 1/20 to 20 are tried
_GOLDEN = (math.sqrt(5) - 1) / 2
_SMALL = 1e-12  # the smallest probability of the truth that counts


@dataclass(frozen=True)
class Bin:
    """The predictions with about the same confidence."""

    confidence: float  # their mean confidence
    accuracy: float  # the share of them that is right
    count: int


def reliability(probabilities: np.ndarray, truth: np.ndarray) -> list[Bin]:
    """The predictions in bins of equal width by confidence, without the empty ones. `probabilities`: N classes."""
    confidence, right = probabilities.max(1), probabilities.argmax(1) == truth
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    chosen = [place == number for number in range(BINS)]
    return [Bin(float(confidence[c].mean()), float(right[c].mean()), int(c.sum())) for c in chosen if c.any()]


def calibration_error(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """The mean distance between confidence and accuracy over the bins, weighted by their counts (ECE)."""
    bins = reliability(probabilities, truth)
    return sum(one.count * abs(one.confidence - one.accuracy) for one in bins) / max(1, len(truth))


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """The probabilities as if all scores were divided by a temperature. What has the probability 0 keeps it."""
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities.astype(np.float64)) / temperature
    found = np.exp(logs - logs.max(1, keepdims=True))
    return np.asarray(found / found.sum(1, keepdims=True))


def best_temperature(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """The temperature with the highest likelihood of the truth, by golden-section search: the loss has one minimum.

    `truth`: the number of the right class; rows with -1 have none and do not count."""
    probabilities, truth = probabilities[truth >= 0], truth[truth >= 0]

    def loss(place: float) -> float:
        right = tempered(probabilities, math.exp(place))[np.arange(len(truth)), truth]
        return -float(np.log(np.maximum(right, _SMALL)).mean())

    low, high = -WIDEST, WIDEST
    while high - low > 1e-4:
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, b) if loss(a) <= loss(b) else (a, high)
    return math.exp((low + high) / 2)
