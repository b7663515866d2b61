"""Tuned networks: modules that a way of tuning adds, parameters that train, and weights that several networks share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from unmask import chance
from unmask.axes import Tune

LAST = 2**31  # an epoch after all others


def put_in(system: Any, tune: Tune, seed: int = 0) -> None:
    """Add the modules of a way of tuning. Their random weights depend only on the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(int(chance.generator(seed, chance.purpose("tuning weights")).integers(2**62)))
        tune.put_in(system)
    system.still = tune.still


def add_students(system: Any, tune: Tune, recipe: Any, seed: int) -> None:
    """Add what learns from texts without labels, if this way of tuning has it. It is not saved."""
    with torch.random.fork_rng():
        torch.manual_seed(int(chance.generator(seed, chance.purpose("students")).integers(2**62)))
        system.students = tune.students(system, recipe)


def without_students(system: nn.Module) -> frozenset[str]:
    """The names of all tensors but those of the students: what is saved."""
    kept = set(system.state_dict()) | {name for name, _ in system.named_parameters()}
    return frozenset(name for name in kept if not name.startswith("students."))


def only_train(system: nn.Module, names: Iterable[str]) -> None:
    """Freeze all parameters but these. A frozen parameter has no gradient, and the optimiser leaves it alone."""
    kept = set(names)
    for name, parameter in system.named_parameters():
        parameter.requires_grad_(name in kept)
        if name not in kept:
            parameter.grad = None


def kept_alone(system: Any, tune: Tune, head: str) -> frozenset[str]:
    """The names of the tensors of a run that holds only what was trained: these parameters, and the head's buffers."""
    kept = set(system.state_dict())
    buffers = [name for name, _ in system.named_buffers() if name in kept and name.startswith(f"predict.{head}.")]
    return tune.trained(system, head, LAST) | frozenset(buffers if head else ())


def share(system: Any, base: Any, head: str) -> None:
    """Use the weights of a base in another network, without a copy: all of them but the new head's."""
    pairs = [(system.backbone, base.backbone)]
    pairs += [(system.predict[name], base.predict[name]) for name in system.predict.keys() - {head}]
    theirs: dict[int, Tensor] = {}
    for mine, other in pairs:
        for tensors, others in (
            (mine.named_parameters(), other.named_parameters()),
            (mine.named_buffers(), other.named_buffers()),
        ):
            known = dict(others)
            theirs |= {id(tensor): known[name] for name, tensor in tensors}
    _replace(system, theirs)


def own(system: nn.Module, names: Iterable[str]) -> None:
    """Give a network its own copies of these parameters, so that other networks keep theirs."""
    parameters = dict(system.named_parameters())
    _replace(system, {id(parameters[name]): _copy(parameters[name]) for name in names if name in parameters})


def _copy(parameter: Tensor) -> nn.Parameter:
    return nn.Parameter(parameter.detach().clone())


def _replace(system: nn.Module, by: dict[int, Any]) -> None:
    """Put other tensors in the place of some. Tied weights stay tied: they are found by identity."""
    for module in system.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and id(tensor) in by:
                    tensors[name] = by[id(tensor)]
