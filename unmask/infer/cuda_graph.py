"""CUDA graphs for generation: record a step once and replay it, because launching its kernels takes longer than they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

from unmask.tree import copied, tensors

_WARM = 2  # steps before the recording; libraries choose their kernels in these steps
_KEPT = Lock()  # held while a model's recordings change, because threads may share a model


def records(device: str) -> bool:
    """Whether steps are recorded on this device."""
    return torch.device(device).type == "cuda"


@contextmanager
def recording(step: Callable[[Any], Any], key: Any, kept: dict[Any, GraphedStep]) -> Iterator[GraphedStep]:
    """A recording of a step that no other thread uses now: the one saved under this key, or a new one.

    Afterwards it replaces all saved recordings, because each of them needs GPU memory for its own state."""
    with _KEPT:
        found = kept.pop(key, None) or GraphedStep(step)
    try:
        yield found
    finally:
        with _KEPT:
            kept.clear()
            kept[key] = found


class GraphedStep:
    """Runs a function that turns a record of tensors on a GPU into the next record, with the same shapes and types.

    The function must not wait for the device or read a value from it. The next call overwrites the result."""

    def __init__(self, step: Callable[[Any], Any]) -> None:
        self.step = step
        self.record: Any = None  # the tensors that the graph reads and writes
        self.graph: torch.cuda.CUDAGraph | None = None
        self.warm = 0  # number of steps that ran without recording

    @torch.no_grad()
    def __call__(self, record: Any) -> Any:
        if self.record is None:
            self.record = copied(record)
        _put(self.record, record)  # does nothing if `record` is the result of the call before
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
                with torch.cuda.graph(graph):  # this records the kernels and does not run them
                    self._forward()
                self.graph = graph
            self.graph.replay()

    def _warm(self) -> None:
        """Run a step without recording, on its own stream, as CUDA graphs require."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._forward()
        torch.cuda.current_stream().wait_stream(stream)

    def _forward(self) -> None:
        _put(self.record, self.step(self.record))


def _put(places: Any, values: Any) -> None:
    """Copy every tensor of `values` into the corresponding tensor of `places`."""
    for place, value in zip(tensors(places), tensors(values), strict=True):
        if place is not value:
            place.copy_(value)
