"""Links: each tensor of ours, and how it is read from theirs and written to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.backbone import Transformer, TransformerXL
from unmask.convert.names import NAMES, Heads, Kind, Names, Table


@dataclass(frozen=True)
class Link:
    """One tensor of ours, and those of theirs that hold the same numbers."""

    ours: str
    theirs: tuple[str, ...]  # several are joined along the first dimension
    turned: bool = False  # theirs is stored input first (GPT-2's Conv1D)
    shape: tuple[int, ...] = ()  # of theirs, where it has more dimensions: all but the first are one of ours (XLNet)

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([self._turn(self._flat(tensors[name])) for name in self.theirs])

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        parts = [self._turn(part) for part in tensor.chunk(len(self.theirs))]
        shaped = [part.reshape(self.shape) if self.shape else part for part in parts]
        return {name: part.contiguous() for name, part in zip(self.theirs, shaped, strict=True)}

    def _flat(self, tensor: Tensor) -> Tensor:
        return tensor.flatten(1).squeeze(0) if self.shape else tensor

    def _turn(self, tensor: Tensor) -> Tensor:
        return tensor.T if self.turned else tensor


def links(kind: Kind, heads: Heads, wanted: Iterable[str], backbone: Transformer | TransformerXL) -> list[Link]:
    """Those of the wanted tensors of ours that the family has a place for, linked."""
    names = list(wanted)
    blocks = [name.split(".")[2] for name in names if name.startswith("backbone.blocks.")]
    known = {link.ours: link for link in _known(kind, heads, sorted(set(blocks), key=int), backbone)}
    return [known[name] for name in names if name in known]


def _known(kind: Kind, heads: Heads, blocks: list[str], backbone: Transformer | TransformerXL) -> list[Link]:
    called = NAMES[kind]
    found = _linked("backbone.", called.prefix, called.network, called, backbone)
    for number in blocks:
        place = f"{called.prefix}{called.place.format(number)}."
        found += _linked(f"backbone.blocks.{number}.", place, called.block, called, backbone)
    for name, table in (
        (heads.tokens, called.tokens),
        (heads.sentence, called.sentence),
        (heads.label, called.label),
        (heads.replaced, called.replaced),
    ):
        found += _linked(f"predict.{name}.", "", table, called, backbone) if name else []
    return found


def _linked(
    before_ours: str, before_theirs: str, table: Table, called: Names, backbone: Transformer | TransformerXL
) -> list[Link]:
    return [
        Link(
            before_ours + ours.format(number),
            tuple(before_theirs + name.format(number) for name in theirs),
            ours in called.turned,
            tuple(getattr(backbone, size) if isinstance(size, str) else size for size in called.shaped.get(ours, ())),
        )
        for ours, theirs in table.items()
        for number in (range(clusters(backbone)) if "{}" in ours else (None,))
    ]


def clusters(backbone: Transformer | TransformerXL) -> int:
    """How many clusters of tokens have a table of their own; 0: all tokens share one."""
    cutoffs = backbone.cutoffs if isinstance(backbone, TransformerXL) else ()
    return len(cutoffs) + 1 if cutoffs else 0
