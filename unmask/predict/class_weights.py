"""The weights of classes in a loss, such as those with which rare classes count as much as frequent ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from unmask.errors import require


def check_class_weights(whose: str, weights: Sequence[float], classes: int) -> None:
    """Refuse weights that are not one number from 0 for each class. `whose`: the head in the message."""
    require(
        not weights or (len(weights) == classes and min(weights) >= 0),
        "{whose}'s weights must be one number from 0 for each class ({classes} in all), got {weights}",
        whose=whose,
        classes=classes,
        weights=weights,
    )


def add_class_weights(module: nn.Module, weights: Sequence[float]) -> None:
    """Give a module the weights as `weights`: C, or None if all are 1. They are not saved with its parameters."""
    module.register_buffer("weights", torch.tensor(weights) if weights else None, persistent=False)
