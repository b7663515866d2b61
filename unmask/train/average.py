"""Averages of the weights: an average is validated and published, while training goes on with the weights themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.axes import Part
from unmask.errors import require
from unmask.train.plan import Moment


@dataclass(frozen=True)
class Triggered(Part):
    """The mean of all weights since the held-out loss stopped falling (NT-ASGD, Merity et al. 2017)."""

    patience: int = 5  # the last validations, which the loss need not be lower than

    def __post_init__(self) -> None:
        require(
            self.patience >= 1,
            "optimise.average.patience must be 1 or more validations, got {patience}",
            patience=self.patience,
        )

    def build(self, model: nn.Module) -> TriggeredAverage:
        return TriggeredAverage(model, self.patience)


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

    def build(self, model: nn.Module) -> SnapshotAverage:
        return SnapshotAverage(model, self)

    def taken(self, progress: float) -> int:
        """How many moments are over at this progress."""
        apart = self.share / (self.count - 1)
        return sum(progress >= 1 - number * apart - 1e-9 for number in range(self.count))


class Average:
    """The moving average of the parameters of a model, by name.

    At each step it keeps the share `keep` of itself. In the first steps it keeps less, (1 + n) / (10 + n) after n steps,
    because it must forget the random weights that training began with."""

    waits = False  # it begins at the first step

    def __init__(self, model: nn.Module, keep: float) -> None:
        self.model, self.keep = model, keep
        self.values: dict[str, Tensor] = {name: p.detach().clone() for name, p in model.named_parameters()}

    @property
    def begun(self) -> bool:
        """Whether there is an average yet."""
        return True

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides the averaged weights."""
        return {}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint, whose averaged weights are loaded."""

    def judge(self, loss: float) -> None:
        """Take note of a held-out loss."""

    @torch.no_grad()
    def add(self, moment: Moment) -> None:
        """Include the weights after a step."""
        self._move(1 - min(self.keep, (1 + moment.step) / (10 + moment.step)))

    def _move(self, new: float) -> None:
        """Move the average towards the weights, by this share of the way."""
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
        """Exchange the weights of the model and their average, if there is one."""
        if not self.begun:
            return
        for name, parameter in self.model.named_parameters():
            own = parameter.detach().clone()
            parameter.copy_(self.values[name])
            self.values[name].copy_(own)


class TriggeredAverage(Average):
    """The mean of the weights since a held-out loss was higher than the lowest loss before the last `patience` ones."""

    waits = True

    def __init__(self, model: nn.Module, patience: int) -> None:
        super().__init__(model, 0.0)
        self.patience, self.losses, self.count = patience, list[float](), 0

    @property
    def begun(self) -> bool:
        return self.count > 0

    def state(self) -> dict[str, Any]:
        return {"losses": self.losses, "count": self.count}

    def resume(self, state: dict[str, Any]) -> None:
        self.losses, self.count = list(state["losses"]), int(state["count"])

    @torch.no_grad()
    def judge(self, loss: float) -> None:
        """Take note of a held-out loss. The average begins with the weights that it was measured with."""
        earlier = self.losses[: -self.patience]
        if not self.begun and earlier and loss > min(earlier):
            self.count = 1
            self._move(1.0)
        self.losses.append(loss)

    @torch.no_grad()
    def add(self, moment: Moment) -> None:
        if self.begun:
            self.count += 1
            self._move(1 / self.count)


class SnapshotAverage(Average):
    """The mean of the weights at the moments that are over. The progress of the training says which, so there is no state."""

    def __init__(self, model: nn.Module, spec: Snapshots) -> None:
        super().__init__(model, 0.0)
        self.spec = spec

    @torch.no_grad()
    def add(self, moment: Moment) -> None:
        before, now = self.spec.taken(moment.before), self.spec.taken(moment.after)
        if now == 0:
            self._move(1.0)
        elif now > before:
            self._move((now - before) / now)


def average_of(model: nn.Module, kind: float | Triggered | Snapshots | None) -> Average | None:
    """The average of an optimiser's `average`; None: the weights are not averaged."""
    if kind is None:
        return None
    return Average(model, kind) if isinstance(kind, int | float) else kind.build(model)
