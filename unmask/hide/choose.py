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
    parts: Tensor | None = None,
    of: Tensor | None = None,
    purpose: str = "choose",
    least: int = 1,
) -> Tensor:
    """B T, True on the tokens of the chosen units.

    The budget is a share of the row's tokens, of those that are in a unit or of those that are `of` interest. Units come
    in random order, and each is taken if the budget, rounded per row, has room for it; the first is taken even if it
    alone is larger, as long as the row has places for it: those of the budget, and `least` in any case. Units that are
    made of `parts` are not passed over but cut: the last has as many parts as there is room for, so that long ones are
    chosen as often as short ones.
    """
    hideable = units >= 0
    most = places(budget, batch.shape[1], least=least)
    limit = ((hideable if of is None else of).sum(1, keepdim=True) * budget).round().clamp(1, most)
    size = _count(units if parts is None else parts, hideable)  # B T, of what is taken whole or not at all
    # units never chosen go to the end: special tokens, and units that the places cannot hold
    held = hideable & ((size if parts is None else _largest(size, units)) <= most)
    key = chance.draw(units, seed, batch.row[:, None], visit[:, None], chance.purpose(purpose))
    key, order = torch.where(held, key, _LAST).sort(dim=1, stable=True)
    held = key != _LAST
    if parts is None:
        taken = _that_fit(key, held, size.gather(1, order), limit)
    else:
        taken = _until_full(parts.gather(1, order), held, limit)
    return torch.zeros_like(taken).scatter(1, order, taken)


def _that_fit(key: Tensor, held: Tensor, size: Tensor, limit: Tensor) -> Tensor:
    """Whole units in their order; one that has no room is passed over, and those after it have another chance."""
    first = torch.ones_like(held)
    first[:, 1:] = key[:, 1:] != key[:, :-1]
    fits, taken = held, held & (key == key[:, :1])  # the first
    room = limit - (size * first * taken).sum(1, keepdim=True)
    for _ in range(_ROUNDS):
        fits = fits & ~taken & (size <= room)
        used = (size * first * fits).cumsum(1)  # tokens of this unit and of all before it that fit
        more = fits & (used <= room)
        taken = taken | more
        room = room - (size * first * more).sum(1, keepdim=True)
    return taken


def _until_full(parts: Tensor, held: Tensor, limit: Tensor) -> Tensor:
    """Parts in the order of their units, up to the one that has no room."""
    used = _largest(held.cumsum(1) * held, parts)  # tokens of this part and of all before it
    return held & (used <= torch.maximum(limit, used[:, :1]))


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


def _largest(x: Tensor, units: Tensor) -> Tensor:
    """B T, the largest number among the tokens of each one's unit."""
    slot = units.clamp(min=0)
    return torch.zeros_like(x).scatter_reduce(1, slot, x, "amax").gather(1, slot)
