"""CUDA graphs for generation: a step is recorded once and replayed. Its kernels run faster than they launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

from unmask.tree import copied, tensors

_WARM = 2  # steps before the recording: libraries choose their kernels
_KEPT = Lock()  # held while a model's recordings change: threads may share a model


def records(device: str) -> bool:
    """Whether steps are recorded there."""
    return torch.device(device).type == "cuda"


@contextmanager
def recording(step: Callable[[Any], Any], key: Any, kept: dict[Any, GraphedStep]) -> Iterator[GraphedStep]:
    """A recording of a step that nothing else uses now: the one that was kept under this key, or a new one.

    It is kept afterwards, in place of any other: each holds a state of its own on the GPU."""
    with _KEPT:
        found = kept.pop(key, None) or GraphedStep(step)
    try:
        yield found
    finally:
        with _KEPT:
            kept.clear()
            kept[key] = found


class GraphedStep:
    """A function from a record of tensors on a GPU to the next such record, all with the same signature.

    It may not wait for the device or read a value from it. Its result is overwritten by the next call."""

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self.step = step
        self.record: Any = None  # where the graph reads and writes
        self.graph: torch.cuda.CUDAGraph | None = None
        self.warm = 0  # steps that ran without a recording

    @torch.no_grad()
    def __call__(self, record: Any) -> Any:
        if self.record is None:
            self.record = copied(record)
        _put(self.record, record)  # does nothing if the record came from here
        self._run()
        return self.record

    def _run(self) -> None:
        with torch.cuda.device(tensors(self.record)[0].device):
            if self.warm < _WARM:
                self.warm += 1
                self._warm()
                return
            if self.graph is None:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):  # nothing runs yet
                    self._forward()
                self.graph = graph
            self.graph.replay()

    def _warm(self) -> None:
        """A step without recording, on its own stream, as CUDA graphs require."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._forward()
        torch.cuda.current_stream().wait_stream(stream)

    def _forward(self) -> None:
        _put(self.record, self.step(self.record))


def _put(places: Any, values: Any) -> None:
    """Copy every tensor of a record into the same tensor of another."""
    for place, value in zip(tensors(places), tensors(values), strict=True):
        if place is not value:
            place.copy_(value)
