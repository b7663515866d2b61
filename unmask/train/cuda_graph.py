"""CUDA graphs for training: kernels are recorded once and replayed, because small kernels take longer to launch than to run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unmask.tree import copied, mapped, signature, tensors

_WARM = 3  # runs before the recording, in which code is compiled and libraries choose their kernels


@dataclass(frozen=True)
class _Recording:
    graph: torch.cuda.CUDAGraph
    inputs: tuple[Any, ...]  # the tensors that the graph reads
    outputs: Any  # the tensors that it writes
    changed: tuple[nn.Parameter, ...]  # the parameters to whose gradients it adds


class Graphed:
    """A function of tensors; its kernels are recorded once for every signature of its inputs.

    The function must not wait for the device or read a value from it. Its results are copied, so that the next call does
    not overwrite them; so all recordings may share one pool of memory. Random numbers follow the seed of the generator, as
    without a recording.
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work = work
        self.recordings: dict[Hashable, _Recording] = {}  # by the signature of the inputs
        self.pool: Any = None  # the memory of all recordings

    def __call__(self, *inputs: Any) -> Any:
        key, given = (signature(inputs), self._state()), tensors(inputs)
        if key not in self.recordings:
            with torch.cuda.device(given[0].device):
                self.recordings[key] = self._record(inputs)
        recording = self.recordings[key]
        _copy(tensors(recording.inputs), given)
        self._ready(recording.changed)
        recording.graph.replay()
        found = [torch.empty_like(tensor) for tensor in tensors(recording.outputs)]
        _copy(found, tensors(recording.outputs))
        rest = iter(found)
        return mapped(recording.outputs, lambda _: next(rest))

    def _record(self, inputs: tuple[Any, ...]) -> _Recording:
        places, random = copied(inputs), torch.cuda.get_rng_state()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._warm(places)
        torch.cuda.current_stream().wait_stream(stream)
        changed = self._warmed()
        torch.cuda.set_rng_state(random)
        graph = torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        with torch.cuda.graph(graph, pool=self.pool, stream=stream):
            outputs = self.work(*places)
        torch.cuda.set_rng_state(random)
        return _Recording(graph, places, outputs, changed)

    def _warm(self, places: tuple[Any, ...]) -> None:
        for _ in range(_WARM):
            self.work(*places)

    def _warmed(self) -> tuple[nn.Parameter, ...]:
        """After the first runs, and before the recording. Returns the parameters that have a gradient now."""
        return ()

    def _ready(self, changed: tuple[nn.Parameter, ...]) -> None:
        """Before each replay."""

    def _state(self) -> Hashable:
        """What a recording depends on besides its inputs."""
        return None


class GraphedGradients(Graphed):
    """A function of tensors that adds to the gradients of a model."""

    def __init__(self, work: Callable[..., Any], model: nn.Module) -> None:
        super().__init__(work)
        self.parameters = list(model.parameters())  # frozen ones too: they may begin to train later
        self.gradients: dict[
            nn.Parameter, Tensor
        ] = {}  # all recordings add to these tensors; a parameter that is never used has none
        self.held: list[Tensor | None] = []  # the gradients before the first runs

    def _ready(self, changed: tuple[nn.Parameter, ...]) -> None:
        """Replace gradients that are None by zeros, in the tensors that the recordings write to.

        Other parameters keep None, so that the optimiser leaves them as they are, as it does without a recording."""
        cleared = [p for p in changed if p.grad is None and p.requires_grad]
        if cleared:
            torch._foreach_zero_([self.gradients[p] for p in cleared])
        for parameter in cleared:
            parameter.grad = self.gradients[parameter]

    def _state(self) -> Hashable:
        return tuple(p.requires_grad for p in self.parameters)  # layers that begin to train need another recording

    def _warm(self, places: tuple[Any, ...]) -> None:
        self.held = [p.grad for p in self.parameters]
        for _ in range(_WARM):
            for parameter in self.parameters:
                parameter.grad = None
            self.work(*places)

    def _warmed(self) -> tuple[nn.Parameter, ...]:
        changed = tuple(parameter for parameter in self.parameters if parameter.grad is not None)
        for parameter, gradient in zip(self.parameters, self.held, strict=True):
            if parameter.grad is not None:
                self.gradients.setdefault(parameter, torch.zeros_like(parameter))
            parameter.grad = gradient
        self.held = []
        self._ready(changed)
        return changed


def _copy(places: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy many small tensors, with one kernel for each dtype."""
    kinds: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for place, value in zip(places, values, strict=True):
        pair = kinds.setdefault(place.dtype, ([], []))
        pair[0].append(place)
        pair[1].append(value)
    for into, given in kinds.values():
        torch._foreach_copy_(into, given)
