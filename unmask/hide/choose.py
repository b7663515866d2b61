"""Choose: whole units at random until the row's budget is used."""

from __future__ import annotations

from dataclasses import fields

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Batch, Targets

_LAST = 0x7FFFFFFFFFFFFFFF
_ROUNDS = 4  # after so many, what room is left is a token or two


def places(budget: float, length: int, *, least: int = 1) -> int:
    """How many predictions a row of this length has places for."""
    return max(least, round(budget * length))


def choose(
    batch: Batch,
    units: Tensor,
    budget: float,
    seed: int,
    visit: Tensor,
    *,
    of: Tensor | None = None,
    purpose: str = "choose",
    least: int = 1,
) -> Tensor:
    """B T, True on the tokens of the chosen units.

    The budget is a share of the row's tokens, of those that are in a unit or of those that are `of` interest. Units come
    in random order, and each is taken if the budget, rounded per row, has room for it; the first is taken even if it
    alone is larger, as long as the row has places for it: those of the budget, and `least` in any case.
    """
    rows, length = batch.shape
    hideable = units >= 0
    size = _count(units, hideable)  # B T, the size of each token's unit
    most = places(budget, length, least=least)
    limit = ((hideable if of is None else of).sum(1, keepdim=True) * budget).round().clamp(1, most)
    key = chance.draw(units, seed, batch.row[:, None], visit[:, None], chance.purpose(purpose))
    # units never chosen go to the end: special tokens, and units that are larger than all the places there are
    key = torch.where(hideable & (size <= most), key, _LAST)
    key, order = key.sort(dim=1, stable=True)
    sorted_size = size.gather(1, order)
    first = torch.ones_like(hideable)
    first[:, 1:] = key[:, 1:] != key[:, :-1]
    fits = key != _LAST
    taken = fits & (key == key[:, :1])  # the first
    room = limit - (sorted_size * first * taken).sum(1, keepdim=True)
    for _ in range(_ROUNDS):  # a unit that has no room is passed over, and those after it have another chance
        fits = fits & ~taken & (sorted_size <= room)
        used = (sorted_size * first * fits).cumsum(1)  # tokens of this unit and of all before it that fit
        more = fits & (used <= room)
        taken = taken | more
        room = room - (sorted_size * first * more).sum(1, keepdim=True)
    return torch.zeros_like(taken).scatter(1, order, taken)


def targets(batch: Batch, units: Tensor, chosen: Tensor, count: int) -> Targets:
    """The chosen tokens as targets, `count` places per row, in order; each knows the ends of its unit."""
    rows, length = batch.shape
    where = torch.argsort(~chosen, dim=1, stable=True)[:, :count]  # chosen ones first, from left to right
    here = torch.arange(length, device=units.device).expand(batch.shape)
    slot = units.clamp(min=0)
    used = chosen & (units >= 0)
    start = torch.full_like(here, length).scatter_reduce(1, slot, torch.where(used, here, length), "amin")
    end = torch.full_like(here, -1).scatter_reduce(1, slot, torch.where(used, here, -1), "amax")
    unit = slot.gather(1, where)
    weight = chosen.gather(1, where)
    base = torch.arange(rows, device=units.device)[:, None] * length
    return Targets(
        where=(where + base).flatten(),
        ids=batch.ids.gather(1, where).flatten(),
        start=(torch.where(weight, start.gather(1, unit), where) + base).flatten(),
        end=(torch.where(weight, end.gather(1, unit), where) + base).flatten(),
        weight=weight.flatten().float(),
    )


def side_by_side(first: Targets, second: Targets, rows: int) -> Targets:
    """Both, those of one row beside each other."""
    joined = {
        f.name: torch.cat([getattr(t, f.name).view(rows, -1) for t in (first, second)], 1).flatten()
        for f in fields(first)
    }
    return Targets(**joined)


def _count(units: Tensor, hideable: Tensor) -> Tensor:
    slot = units.clamp(min=0)
    return torch.zeros_like(units).scatter_add(1, slot, hideable.long()).gather(1, slot)
