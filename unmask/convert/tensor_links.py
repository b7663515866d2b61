"""Links between our tensors and Hugging Face's tensors: how each one is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unmask.convert.names import Heads, Table

if TYPE_CHECKING:
    from unmask.convert.family import Family


@dataclass(frozen=True)
class Link:
    """One of our tensors, and the Hugging Face tensors with the same values."""

    ours: str  # the name of our tensor
    theirs: tuple[str, ...]  # the names of their tensors; several are joined along the first dimension
    transposed: bool = False  # whether theirs is stored as input x output (Conv1D)
    shape: tuple[int, ...] = ()  # the shape of theirs, if it has more dimensions: all but the first are one of ours

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([self._transpose(self._flat(tensors[name])) for name in self.theirs])

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        parts = [self._transpose(part) for part in tensor.chunk(len(self.theirs))]
        shaped = [part.reshape(self.shape) if self.shape else part for part in parts]
        return {name: part.contiguous() for name, part in zip(self.theirs, shaped, strict=True)}

    def _flat(self, tensor: Tensor) -> Tensor:
        return tensor.flatten(1).squeeze(0) if self.shape else tensor

    def _transpose(self, tensor: Tensor) -> Tensor:
        return tensor.T if self.transposed else tensor


def links(family: Family, heads: Heads, wanted: Iterable[str], backbone: Any) -> list[Link]:
    """The links of those tensors in `wanted` (our names) that the family has a place for."""
    names = list(wanted)
    known = {link.ours: link for link in _known(family, heads, names, backbone)}
    return [known[name] for name in names if name in known]


def _known(family: Family, heads: Heads, wanted: list[str], backbone: Any) -> list[Link]:
    names = family.names
    found = _linked("backbone.", names.prefix, names.network, family, backbone)
    for ours, (place, table) in names.all_stacks.items():
        before = f"backbone.{ours}."
        numbers = {name.removeprefix(before).split(".")[0] for name in wanted if name.startswith(before)}
        for number in sorted(numbers, key=int):
            theirs = f"{names.prefix}{place.format(number)}."
            found += _linked(f"{before}{number}.", theirs, table, family, backbone)
    for name, table in (
        (heads.tokens, names.tokens),
        (heads.sentence, names.sentence),
        (heads.label, names.label),
        (heads.replaced, names.replaced),
        (heads.tags, names.tags),
        (heads.span, names.span),
        (heads.choice, names.choice),
    ):
        found += _linked(f"predict.{name}.", "", table, family, backbone) if name else []
    return found


def _linked(before_ours: str, before_theirs: str, table: Table, family: Family, backbone: Any) -> list[Link]:
    shapes, transposed = family.names.shapes, family.names.transposed
    return [
        Link(
            before_ours + ours.format(number),
            tuple(before_theirs + name.format(number) for name in theirs),
            ours in transposed,
            tuple(getattr(backbone, size) if isinstance(size, str) else size for size in shapes.get(ours, ())),
        )
        for ours, theirs in table.items()
        for number in (range(family.token_tables(backbone)) if "{}" in ours else (None,))
    ]
