"""Links: each tensor of ours, and how it is read from theirs and written to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.convert.names import NAMES, Heads, Kind, Table


@dataclass(frozen=True)
class Link:
    """One tensor of ours, and those of theirs that hold the same numbers."""

    ours: str
    theirs: tuple[str, ...]  # several are joined along the first dimension
    turned: bool = False  # theirs is stored input first (GPT-2's Conv1D)

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([self._turn(tensors[name]) for name in self.theirs])

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        parts = tensor.chunk(len(self.theirs))
        return {name: self._turn(part).contiguous() for name, part in zip(self.theirs, parts, strict=True)}

    def _turn(self, tensor: Tensor) -> Tensor:
        return tensor.T if self.turned else tensor


def links(kind: Kind, heads: Heads, wanted: Iterable[str]) -> list[Link]:
    """Those of the wanted tensors of ours that the family has a place for, linked."""
    names = list(wanted)
    blocks = [name.split(".")[2] for name in names if name.startswith("backbone.blocks.")]
    known = {link.ours: link for link in _known(kind, heads, sorted(set(blocks), key=int))}
    return [known[name] for name in names if name in known]


def _known(kind: Kind, heads: Heads, blocks: list[str]) -> list[Link]:
    called = NAMES[kind]
    found = _linked("backbone.", called.prefix, called.network)
    for number in blocks:
        place = f"{called.prefix}{called.place.format(number)}."
        found += _linked(f"backbone.blocks.{number}.", place, called.block, called.turned)
    for name, table in (
        (heads.tokens, called.tokens),
        (heads.sentence, called.sentence),
        (heads.label, called.label),
        (heads.replaced, called.replaced),
    ):
        found += _linked(f"predict.{name}.", "", table) if name else []
    return found


def _linked(before_ours: str, before_theirs: str, table: Table, turned: tuple[str, ...] = ()) -> list[Link]:
    return [
        Link(before_ours + ours, tuple(before_theirs + name for name in theirs), ours in turned)
        for ours, theirs in table.items()
    ]
