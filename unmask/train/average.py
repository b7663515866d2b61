"""A moving average of the weights: it is validated and published, while training goes on with the weights themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class Average:
    """The moving average of the parameters of a model, by name.

    At each step it keeps the share `keep` of itself. In the first steps it keeps less, (1 + n) / (10 + n) after n steps,
    because it must forget the random weights that training began with."""

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.model, self.keep = model, keep
        self.values: dict[str, Tensor] = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def add(self, step: int) -> None:
        """Include the weights after a step; steps are counted from 1."""
        new = 1 - min(self.keep, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.values.values()), [p.detach() for p in self.model.parameters()], new)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """A context in which the model has the averaged weights. They are exchanged in place: recorded kernels stay valid."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    @torch.no_grad()
    def exchange(self) -> None:
        """Exchange the weights of the model and their average."""
        for name, parameter in self.model.named_parameters():
            own = parameter.detach().clone()
            parameter.copy_(self.values[name])
            self.values[name].copy_(own)
