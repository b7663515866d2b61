"""Record: a step of generation on a GPU, recorded once and replayed: launching its kernels takes longer than they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unmask.train.graph import copied, tensors

_WARM = 2  # steps before the recording: libraries choose their kernels


class Recorded:
    """A function from a record of tensors on a GPU to the next such record, all of the same shapes.

    It may wait for nothing and may ask the device for no value. What it returns is overwritten by the next call."""

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self.step = step
        self.record: Any = None  # where the graph reads and writes
        self.graph: torch.cuda.CUDAGraph | None = None
        self.calls = 0

    @torch.no_grad()
    def __call__(self, record: Any) -> Any:
        self.calls += 1
        if self.record is None:
            self.record = copied(record)
        _put(self.record, record)  # nothing to do for what came from here
        with torch.cuda.device(tensors(self.record)[0].device):
            if self.calls <= _WARM:
                self._warm()
            else:
                self._replay()
        return self.record

    def _forward(self) -> None:
        _put(self.record, self.step(self.record))

    def _warm(self) -> None:
        """A step like any other, on a stream of its own, as recording wants it."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._forward()
        torch.cuda.current_stream().wait_stream(stream)

    def _replay(self) -> None:
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):  # nothing runs yet
                self._forward()
        self.graph.replay()


def _put(places: Any, values: Any) -> None:
    """Write every tensor of a record where another has it."""
    for place, value in zip(tensors(places), tensors(values), strict=True):
        if place is not value:
            place.copy_(value)
