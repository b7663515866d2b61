"""CUDA graphs for training: kernels are recorded once and replayed, because small kernels take longer to launch than to run."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.tree import copied, signature, tensors

_WARM = 3  # runs before the recording, in which code is compiled and libraries choose their kernels


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    inputs: tuple[Any, ...]  # the tensors that the graph reads
    outputs: Any  # the tensors that it writes


class GraphedGradients:
    """A function of tensors that adds to the gradients of a model; its kernels are recorded once for every signature.

    The function must not wait for the device or read a value from it. Its results are copied, so that the next call does
    not overwrite them. Random numbers follow the seed of the generator, as without a recording.
    """

    def __init__(self, work: Callable[..., Any], model: nn.Module) -> None:
        self.work, self.parameters = work, [p for p in model.parameters() if p.requires_grad]
        self.gradients: dict[
            nn.Parameter, Tensor
        ] = {}  # all recordings add to these tensors; a parameter that is never used has none
        self.recordings: dict[Hashable, _Recording] = {}  # by the signature of the inputs

    def __call__(self, *inputs: Any) -> Any:
        key = signature(inputs)
        if key not in self.recordings:
            with torch.cuda.device(self.parameters[0].device):
                self.recordings[key] = self._record(inputs)
        recording = self.recordings[key]
        for place, value in zip(tensors(recording.inputs), tensors(inputs), strict=True):
            place.copy_(value)
        self._hold()
        recording.graph.replay()
        return copied(recording.outputs)

    def _hold(self) -> None:
        """Replace gradients that are None by zeros, in the tensors that the recordings write to."""
        cleared = [p for p in self.gradients if p.grad is None]
        if cleared:
            torch._foreach_zero_([self.gradients[p] for p in cleared])
        for parameter in cleared:
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
