"""LoRA: a matrix of low rank is added to some projections of a network that else stays as it is (Hu et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.adapt._way import Added, of_head
from unmask.axes import LowRankRows
from unmask.errors import require


@dataclass(frozen=True)
class Lora(Added):
    """Train a matrix of low rank for each of some projections, and the head."""

    rank: int = 8  # of each matrix
    alpha: float = 16.0  # the matrix is multiplied by alpha / rank
    dropout: float = 0.0  # on the input of the matrix
    projections: tuple[str, ...] = ("query", "value")  # also: key, out, and up and down of the feed-forward layer

    def __post_init__(self) -> None:
        require(self.rank >= 1, "tune.rank must be 1 or more, got {rank}", rank=self.rank)
        require(self.alpha > 0, "tune.alpha must be over 0, got {alpha}", alpha=self.alpha)
        require(0 <= self.dropout < 1, "tune.dropout must be in [0, 1), got {dropout}", dropout=self.dropout)
        require(
            len(set(self.projections)) == len(self.projections) > 0,
            "tune.projections must name one projection or more, each once, got {projections}: write (query, value)",
            projections=self.projections,
        )

    def put_in(self, system: Any) -> None:
        found = list(_projecting(system))
        known = sorted({name for _, table in found for name in table})
        require(
            bool(known),
            "--tune lora adds to the projections of attention, and this network has no attention: choose another way, such as "
            "--tune ulmfit",
        )
        strange = [name for name in self.projections if name not in known]
        require(
            not strange,
            "tune.projections names {strange}, but the network has {known}: name some of these",
            strange=", ".join(strange),
            known=", ".join(known),
        )
        for module, table in found:
            chosen = {name: table[name] for name in self.projections if name in table}
            for linear in dict.fromkeys(linear for linear, _ in chosen.values()):
                rows = {name: rows for name, (layer, rows) in chosen.items() if layer == linear}
                setattr(module, linear, LowRank(self, getattr(module, linear), rows))

    def merge(self, system: Any) -> None:
        for module in list(system.backbone.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, LowRank):
                    setattr(module, name, child.merged())

    def factors(self, system: Any) -> dict[str, list[LowRankRows]]:
        named = system.named_modules()
        return {f"{name}.weight": module.factors() for name, module in named if isinstance(module, LowRank)}

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        mine = [module for module in system.backbone.modules() if isinstance(module, LowRank)]
        chosen = {id(parameter) for module in mine for parameter in module.added()}
        names = frozenset(name for name, parameter in system.named_parameters() if id(parameter) in chosen)
        return names | of_head(system, head)


class LowRank(nn.Module):
    """A linear layer, and a matrix of low rank for some of its rows. Its weights keep their names."""

    def __init__(self, spec: Lora, linear: nn.Linear, rows: dict[str, Sequence[int]]) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.scale = spec.alpha / spec.rank
        self.dropout = nn.Dropout(spec.dropout)
        self.rows = rows
        for name, places in rows.items():
            self.register_buffer(f"rows_{name}", torch.tensor(list(places)), persistent=False)
        self.a = nn.ParameterDict({name: torch.empty(spec.rank, linear.in_features) for name in rows})
        self.b = nn.ParameterDict({name: torch.zeros(len(places), spec.rank) for name, places in rows.items()})
        for matrix in self.a.values():
            nn.init.kaiming_uniform_(matrix, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        found = F.linear(x, self.weight, self.bias)
        for name in self.rows:
            more = F.linear(F.linear(self.dropout(x), self.a[name]), self.b[name]) * self.scale
            found = found.index_add(-1, getattr(self, f"rows_{name}"), more.to(found.dtype))
        return found

    def added(self) -> Iterator[nn.Parameter]:
        yield from (*self.a.parameters(), *self.b.parameters())

    def factors(self) -> list[LowRankRows]:
        height = len(self.weight)
        return [LowRankRows(rows, height, self.a[name], self.b[name], self.scale) for name, rows in self.rows.items()]

    def merged(self) -> nn.Linear:
        """One linear layer that computes the same, with its own weights: other networks may share these."""
        weight = self.weight.detach().clone()
        for one in self.factors():
            product = one.scale * one.up.detach().float() @ one.down.detach().float()
            weight[list(one.rows)] += product.to(weight.dtype)
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=self.bias is not None, device="meta")
        made.weight, made.bias = nn.Parameter(weight), self.bias
        return made


def _projecting(system: Any) -> Iterator[tuple[nn.Module, dict[str, tuple[str, Sequence[int]]]]]:
    """Every module that declares `projections`: the linear layer of each, and its rows in that layer."""
    for module in list(system.backbone.modules()):
        table = getattr(module, "projections", None)
        if table is not None:
            yield module, table
