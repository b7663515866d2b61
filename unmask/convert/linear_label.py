"""Write a linear classifier as a dense layer, a GELU and an output layer, with exactly the same scores.

gelu(z) - gelu(-z) = z, because gelu(z) = z * Phi(z) and Phi(z) + Phi(-z) = 1. So the dense layer computes the scores z and
-z, one row for each class and sign, and the output layer subtracts the second half from the first.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from unmask.predict import Choice, Label


def fits(head: Label | Choice, activation: str | None, width: int) -> bool:
    """Whether a dense layer of this width and activation can compute the scores of a head without a dense layer."""
    return not head.pooler and activation == "gelu" and 2 * head.outputs <= width


def doubled(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with a dense layer before the output of the head `name`. Unused rows of the dense layer are 0."""
    weight = tensors[f"predict.{name}.out.weight"]
    classes, width = weight.shape
    bias = tensors.get(f"predict.{name}.out.bias", weight.new_zeros(classes))
    rows, signs = weight.new_zeros(width, width), weight.new_zeros(classes, width)
    rows[: 2 * classes] = torch.cat((weight, -weight))
    signs[:, : 2 * classes] = torch.cat((torch.eye(classes), -torch.eye(classes)), 1)
    biases = weight.new_zeros(width)
    biases[: 2 * classes] = torch.cat((bias, -bias))
    own = {"dense.weight": rows, "dense.bias": biases, "out.weight": signs, "out.bias": torch.zeros_like(bias)}
    return dict(tensors) | {f"predict.{name}.{which}": tensor for which, tensor in own.items()}
