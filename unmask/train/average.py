"""An average of the weights: it is validated and published, while training goes on with the weights themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.axes import Part
from unmask.errors import require
from unmask.train.plan import Moment


@dataclass(frozen=True)
class Snapshots(Part):
    """The mean of the weights at several moments at the end of the training, the last step included (Vaswani et al. 2017).

    Before the first of them, the average is the weights themselves."""

    count: int = 5  # the number of moments, at equal distances
    share: float = 0.05  # of the training, from the first of them to the end

    def __post_init__(self) -> None:
        require(self.count >= 2, "optimise.average.count must be 2 or more, got {count}", count=self.count)
        require(
            0 < self.share <= 1,
            "optimise.average.share must be in (0, 1], got {share}: write 0.05 for the last 5%",
            share=self.share,
        )

    def taken(self, progress: float) -> int:
        """How many moments are over at this progress."""
        apart = self.share / (self.count - 1)
        return sum(progress >= 1 - number * apart - 1e-9 for number in range(self.count))

    def new(self, moment: Moment) -> float:
        """The share of the average that the weights after a step have."""
        before, now = self.taken(moment.before), self.taken(moment.after)
        return 1.0 if now == 0 else (now - before) / now


class Average:
    """The average of the parameters of a model, by name.

    With a share `keep`, it is a moving average, which keeps this share of itself at each step. In the first steps it keeps
    less, (1 + n) / (10 + n) after n steps, because it must forget the random weights that training began with."""

    def __init__(self, model: nn.Module, keep: float | Snapshots) -> None:
        self.model, self.keep = model, keep
        self.values: dict[str, Tensor] = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def add(self, moment: Moment) -> None:
        """Include the weights after a step."""
        new = self._new(moment)
        if new:
            torch._foreach_lerp_(list(self.values.values()), [p.detach() for p in self.model.parameters()], new)

    def _new(self, moment: Moment) -> float:
        if isinstance(self.keep, int | float):
            return 1 - min(self.keep, (1 + moment.step) / (10 + moment.step))
        return self.keep.new(moment)

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
