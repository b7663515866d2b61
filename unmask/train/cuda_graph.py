"""Graph: work on a GPU, recorded once and replayed. A small network's kernels take less time to run than to launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.batch import Record

_WARM = 3  # runs before the recording: the first compile, and libraries choose their kernels


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    inputs: tuple[Any, ...]  # where the graph reads
    outputs: Any  # where it writes


class GraphedGradients:
    """A function of tensors that adds to the gradients of a model; its kernels are recorded once for every shape.

    The function may wait for nothing and may ask the device for no value. What it returns is copied, so that it
    outlives the next call. Random numbers follow the generator's seed, as they would without a recording.
    """

    def __init__(self, work: Callable[..., Any], model: nn.Module) -> None:
        self.work, self.parameters = work, [p for p in model.parameters() if p.requires_grad]
        self.gradients: dict[nn.Parameter, Tensor] = {}  # where all recordings add; none for what is never used
        self.recordings: dict[tuple[Any, ...], _Recording] = {}

    def __call__(self, *inputs: Any) -> Any:
        shapes = tuple((t.shape, t.dtype) for t in tensors(inputs))
        if shapes not in self.recordings:
            with torch.cuda.device(self.parameters[0].device):
                self.recordings[shapes] = self._record(inputs)
        recording = self.recordings[shapes]
        for place, value in zip(tensors(recording.inputs), tensors(inputs), strict=True):
            place.copy_(value)
        self._hold()
        recording.graph.replay()
        return copied(recording.outputs)

    def _hold(self) -> None:
        """Gradients that were set to none begin anew as zeros, in the place that the recordings know."""
        fresh = [p for p in self.gradients if p.grad is None]
        if fresh:
            torch._foreach_zero_([self.gradients[p] for p in fresh])
        for parameter in fresh:
            parameter.grad = self.gradients[parameter]

    def _record(self, inputs: tuple[Any, ...]) -> _Recording:
        places, random = copied(inputs), torch.cuda.get_rng_state()
        held = [p.grad for p in self.parameters]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                for parameter in self.parameters:
                    parameter.grad = None
                self.work(*places)
        torch.cuda.current_stream().wait_stream(stream)
        for parameter, gradient in zip(self.parameters, held, strict=True):
            if parameter.grad is not None:
                self.gradients.setdefault(parameter, torch.zeros_like(parameter))
            parameter.grad = gradient
        self._hold()
        torch.cuda.set_rng_state(random)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            outputs = self.work(*places)
        torch.cuda.set_rng_state(random)
        return _Recording(graph, places, outputs)


def tensors(value: Any) -> list[Tensor]:
    """All tensors in a tree of records, dicts and sequences, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Record):
        return tensors(vars(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in items for tensor in tensors(item)]


def copied(value: Any) -> Any:
    """The same tree with tensors of its own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Record):
        return value.replace(**copied(vars(value)))
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return type(value)(copied(item) for item in value) if isinstance(value, list | tuple) else value
