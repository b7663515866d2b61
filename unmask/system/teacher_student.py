"""Teacher and students: the network's own predictions on texts without labels teach heads that see less (Clark et al. 2018).

The teacher is the network with the head of the task. It predicts without dropout, and no gradient goes through its predictions. Each
student has a head of the same kind, and reads a view of the text. What the students learn goes into the layers that they share with the
teacher, and never into the head of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from unmask import curves
from unmask.axes import Curve
from unmask.batch import Batch, Hidden, Loss
from unmask.system.views import Reading, View, Viewer


class Students(nn.Module):
    """The heads of the students, by view. `head`: the name of the teacher's. `weight`: of what they learn. `dropout`: of the network
    while they learn; None: as on examples with labels."""

    def __init__(
        self, viewer: Viewer, heads: Mapping[View, Any], head: str, *, weight: float | Curve = 1.0, dropout: float | None = None
    ) -> None:  # fmt: skip
        super().__init__()
        self.viewer, self.head, self.weight, self.dropout = viewer, head, weight, dropout
        self.views, self.heads = tuple(heads), nn.ModuleList(heads.values())  # a ModuleDict may have no "forward"

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """How many answers each student learns from a batch."""
        return {view: self.viewer.weight(view, batch).sum() for view in self.views}

    def forward(self, system: Any, batch: Batch) -> dict[str, Loss]:
        """The loss of each student: how far its answers are from those of the teacher."""
        batch = batch.replace(tracks=())
        read = system.read(batch)
        taught = self._taught(system, read)
        with dropout_of(system, self.dropout):
            only_masked = self.views == ("masked",)  # then nothing reads the whole text besides the teacher
            whole = Reading(Hidden(()) if only_masked else system.vectors(read)[0], read)
            return {view: self._loss(view, self.viewer.read(view, system, batch, whole), taught) for view in self.views}

    def _loss(self, view: View, seen: Reading, taught: Tensor) -> Loss:
        head: Any = self.heads[self.views.index(view)]
        losses = divergence(taught, head.decode(seen.hidden, seen.batch).float())
        counted = self.viewer.weight(view, seen.batch)
        weight = curves.at(self.weight, seen.batch.progress)
        # without a copy to the device, which could not be recorded
        scale = weight if isinstance(weight, Tensor) else taught.new_full((), weight)
        return Loss((losses * counted).sum(), counted.sum(), scale=scale)

    @torch.no_grad()
    def _taught(self, system: Any, read: Batch) -> Tensor:
        """The scores of the teacher, without dropout."""
        before = system.training
        system.eval()
        try:
            scores: Tensor = system.predict[self.head].decode(system.vectors(read)[0], read).float()
        finally:
            system.train(before)
        return scores


def divergence(taught: Tensor, scores: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of the student's distribution from the teacher's, for each answer."""
    wanted = taught.log_softmax(-1)
    return (wanted.exp() * (wanted - scores.log_softmax(-1))).sum(-1)


@contextmanager
def dropout_of(system: nn.Module, rate: float | None) -> Iterator[None]:
    """A context in which the dropout layers of a network have another rate; None: their own."""
    layers = [] if rate is None else [module for module in system.modules() if isinstance(module, nn.Dropout)]
    before = [layer.p for layer in layers]
    for layer in layers:
        layer.p = rate or 0.0
    try:
        yield
    finally:
        for layer, own in zip(layers, before, strict=True):
            layer.p = own
