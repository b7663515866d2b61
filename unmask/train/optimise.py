"""AdamW with the exclusions of the papers, the curves of the learning rate, and functions that all optimisers share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from unmask import curves
from unmask.axes import Part
from unmask.errors import require
from unmask.train.average import Snapshots, Triggered
from unmask.train.plan import Moment

Curve = Literal["linear", "cosine", "inverse_sqrt", "constant", "trapezoid"]
FALL = 0.1  # share of the steps in which the curve "trapezoid" falls


@dataclass(frozen=True)
class AdamW(Part):
    """Adam with decoupled weight decay; biases and norms have no weight decay."""

    rate: float = 1e-4  # the highest learning rate, reached after the warmup
    betas: tuple[float, float] = (0.9, 0.999)  # decay rates of the mean and of the mean square
    epsilon: float = 1e-6  # added to the root of the mean square
    decay: float = 0.01  # weight decay
    clip: float | None = 1.0  # largest gradient norm; none for no clipping
    warmup: float = 0.01  # share of the steps in which the rate rises from 0
    curve: Curve = "linear"  # how the rate changes after the warmup
    correct: bool = True  # Adam's bias correction; BERT's released code leaves it out
    layer_decay: float = 1.0  # rate of a layer as a share of the rate of the layer above it; 1: all layers alike
    # share of the average of the weights that a step keeps, such as 0.999, or Triggered, or Snapshots; none: no average
    average: float | Triggered | Snapshots | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        require(
            0 < self.layer_decay <= 1,
            "optimise.layer_decay must be in (0, 1], got {layer_decay}: 1 gives all layers the same rate",
            layer_decay=self.layer_decay,
        )

    def build(self, model: nn.Module) -> torch.optim.AdamW:
        scales = layer_scales(model, self.layer_decay) if self.layer_decay < 1 else {}
        return torch.optim.AdamW(
            groups(model, self.decay, scales), lr=self.rate, betas=self.betas, eps=self.epsilon, fused=True
        )

    def set(self, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
        """Set the rate for a step; returns it."""
        rate = self.rate * factor(self.curve, self.warmup, moment)
        root, mean = 1.0, 1.0
        if not self.correct:
            # put the inverse of the correction into the rate and epsilon: this is exactly Adam without bias correction
            mean, root = 1 - self.betas[0] ** moment.step, math.sqrt(1 - self.betas[1] ** moment.step)
        for group in optimiser.param_groups:
            group["lr"] = rate * share(group, moment) * mean / root
            group["eps"] = self.epsilon / root
            if group["weight_decay"]:
                group["weight_decay"] = self.decay * root / mean
        return rate


def factor(curve: Curve, warmup: float, moment: Moment) -> float:
    """The share of the highest rate at a step."""
    if moment.after <= warmup:
        return moment.after / warmup
    if curve == "constant":
        return 1.0
    if curve == "inverse_sqrt":
        return math.sqrt(warmup / moment.after)
    # measured before the step, so that the last step has a rate above 0
    if curve == "trapezoid":
        falls = max(warmup, 1 - FALL)
        return 1 - math.sqrt(max(0.0, moment.before - falls) / (1 - falls))
    done = max(0.0, moment.before - warmup) / (1 - warmup)
    return 1 - done if curve == "linear" else 0.5 * (1 + math.cos(math.pi * done))


def groups(model: nn.Module, decay: float, scales: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
    """Parameter groups, matrices first. Only matrices have weight decay; biases, norms and other vectors have none.

    `scales`: the learning rate of a parameter, by name, as a share of the full rate; 1 if none is given. A system with
    several networks may declare `rates`: the rate of each parameter, as a share that may change during training."""
    rates: Mapping[str, Any] = getattr(model, "rates", {})
    found: dict[tuple[bool, float, Any], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (parameter.dim() <= 1, (scales or {}).get(name, 1.0), rates.get(name, 1.0))
            found.setdefault(key, []).append(parameter)
    return [
        {"params": found[key], "weight_decay": 0.0 if key[0] else decay, "scale": key[1], "network": key[2]}
        for key in sorted(found, key=lambda key: key[:2])
    ]


def set_rates(optimise: Any, optimiser: torch.optim.Optimizer, moment: Moment) -> float:
    """Set the rate of every parameter group for a step; returns the full rate."""
    rate: float = optimise.rate * factor(optimise.curve, optimise.warmup, moment)
    for group in optimiser.param_groups:
        group["lr"] = rate * share(group, moment)
    return rate


def by_steps(
    optimiser: torch.optim.Optimizer, group: Mapping[str, Any], names: Sequence[str]
) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """The parameters of a group that have a gradient, by how many steps each has made, with this one: a head that was not
    read so far is some steps behind. `names`: the tensors of a parameter's state, which start at 0."""
    found: dict[int, list[torch.Tensor]] = {}
    for parameter in group["params"]:
        if parameter.grad is None:
            continue
        state = optimiser.state[parameter]
        if not state:
            state |= {"step": torch.zeros(())} | {name: torch.zeros_like(parameter) for name in names}
        state["step"] += 1
        found.setdefault(int(state["step"]), []).append(parameter)
    yield from sorted(found.items())


def share(group: Mapping[str, Any], moment: Moment) -> float:
    """The learning rate of a parameter group at a step, as a share of the rate of that step."""
    return float(group["scale"] * curves.at(group["network"], moment.before) * moment.pace)


def layer_scales(model: Any, decay: float) -> dict[str, float]:
    """The learning rate of each parameter as a share of the full rate (ELECTRA, `_get_layer_lrs` in its code).

    The embeddings are at depth 0, the layers at 1 ... L and the heads at L + 2; the share is decay^(L + 2 - depth).
    A parameter that several layers share has the depth of the highest of these layers."""
    layers = model.backbone.layer_modules
    depth = {id(parameter): 0 for parameter in model.backbone.parameters()}
    for number, modules in enumerate(layers, 1):
        depth |= {id(parameter): number for module in modules for parameter in module.parameters()}
    top = len(layers) + 2
    return {name: decay ** (top - depth.get(id(parameter), top)) for name, parameter in model.named_parameters()}


def check_numbers(optimise: Any) -> None:
    """Refuse values that Adam and its variants cannot use."""
    check_rate(optimise)
    require(
        len(optimise.betas) == 2 and all(0 <= b < 1 for b in optimise.betas),
        "optimise.betas must be two numbers in [0, 1), got {betas}",
        betas=optimise.betas,
    )
    require(optimise.epsilon > 0, "optimise.epsilon must be over 0, got {epsilon}", epsilon=optimise.epsilon)


def check_rate(optimise: Any) -> None:
    """Refuse values that no optimiser can use."""
    require(optimise.rate > 0, "optimise.rate must be over 0, got {rate}", rate=optimise.rate)
    require(
        0 <= optimise.warmup < 1,
        "optimise.warmup must be in [0, 1), got {warmup}: write 0.1 for 10% of the steps",
        warmup=optimise.warmup,
    )
    require(
        optimise.warmup > 0 or optimise.curve != "inverse_sqrt",
        "optimise.curve=inverse_sqrt needs a warmup, and optimise.warmup is 0: set it to 0.1, for example",
    )
    require(optimise.decay >= 0, "optimise.decay must be 0 or more, got {decay}", decay=optimise.decay)
    require(
        optimise.clip is None or optimise.clip > 0,
        "optimise.clip must be over 0 or none, got {clip}",
        clip=optimise.clip,
    )
    require(
        not isinstance(optimise.average, int | float) or 0 < optimise.average < 1,
        "optimise.average must be in (0, 1) or none, got {average}: with 0.999, about the last 1,000 steps are averaged",
        average=optimise.average,
    )
