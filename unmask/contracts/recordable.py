"""Recordable: a training step can be recorded and replayed on a GPU, because nothing in it waits for the device."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from unmask.contracts.broken import expect
from unmask.contracts.case import Case
from unmask.contracts.contract import Contract
from unmask.contracts.training import LONG, batches

_ATEN = torch.ops.aten
# Operations whose results the CPU must know before it can go on: a number, or a shape that depends on values.
WAITING = {
    _ATEN._local_scalar_dense.default, _ATEN.equal.default, _ATEN.masked_select.default, _ATEN.nonzero.default,
    _ATEN._unique2.default, _ATEN.unique_consecutive.default, _ATEN.unique_dim.default, _ATEN._pack_padded_sequence.default,
}  # fmt: skip


class _Watch(TorchDispatchMode):
    """Refuses operations that would wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.on = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        waits = func in WAITING or (func is _ATEN.index.Tensor and any(_is_mask(one) for one in args[1]))
        expect(
            not (waits and self.on),
            f"A training step must not wait for the device, but it calls {func}: it could not be recorded on a GPU.",
        )
        return func(*args, **kwargs or {})


class _OnlyOnCPU(TorchFunctionMode):
    """`one_hot` looks at its numbers on a CPU, and not on a GPU."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.watch.on = func is not F.one_hot
        try:
            return func(*args, **kwargs or {})
        finally:
            self.watch.on = True


def _is_mask(index: Any) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def records(case: Case) -> None:
    """Hide rows of every track, compute their losses and gradients, and watch every operation."""
    for batch in batches(case, LONG):
        system = case.build().train()
        with _Watch() as watch, _OnlyOnCPU(watch):
            hidden, _ = system.hide(batch)
            losses, _ = system.step(hidden, None)
            torch.stack([loss.total.float() for loss in losses.values()]).sum().backward()


def _recorded(case: Case) -> bool:
    return "random lengths" not in case.gives  # each length would need its own recording


CONTRACTS = (
    Contract("recordable", "Nothing in a training step waits for the device.", records, _recorded, trains=True),
)
