"""The weights of labels in the loss of a task: those of the user, or those with which rare labels count as much as frequent ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmask.errors import require


def class_weights(balance: bool, weights: tuple[float, ...], numbers: Sequence[int], classes: int) -> tuple[float, ...]:
    """The weight of each class; (): all 1. `numbers`: the classes of the training examples."""
    check_one(balance, weights)
    if not balance:
        return weights
    counts = np.bincount(np.asarray(numbers, np.int64), minlength=classes)
    return tuple((len(numbers) / (classes * np.maximum(1, counts))).tolist())


def yes_weights(balance: bool, weights: tuple[float, ...], table: np.ndarray) -> tuple[float, ...]:
    """The weight of a yes of each label, next to a no; (): all 1. `table`: training examples x labels, 1 for a yes."""
    check_one(balance, weights)
    if not balance:
        return weights
    yes = table.sum(0)
    return tuple((np.maximum(1, len(table) - yes) / np.maximum(1, yes)).tolist())


def check_one(balance: bool, weights: tuple[float, ...]) -> None:
    require(
        not (balance and weights),
        "balance=true computes the weights of labels from the training examples, and weights={weights} gives them: leave one of them out",
        weights=weights,
    )
