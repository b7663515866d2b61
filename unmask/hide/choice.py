"""Choose whole units at random until the row's budget is used."""

from __future__ import annotations

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Batch, Targets

_LAST = 0x7FFFFFFFFFFFFFFF
_ROUNDS = 4  # after this number of rounds, only one or two tokens of the budget are left


def places(budget: float, length: int, *, least: int = 1) -> int:
    """The number of places for predictions in a row of this length."""
    return max(least, round(budget * length))


def choose(
    batch: Batch, units: Tensor, budget: float | Tensor, most_budget: float, seed: int, visit: Tensor, *,
    parts: Tensor | None = None, of: Tensor | None = None, purpose: str = "choose", least: int = 1, reuse: int | None = None,
) -> Tensor:  # fmt: skip
    """B T, True on the tokens of the chosen units.

    The budget is a share of the row's tokens: of the tokens in units, or of the tokens in `of` (B T). Units are tried in
    random order, and each is chosen if it fits into the rest of the budget, which is rounded per row. The first unit is
    chosen even if it is larger than the budget, if the row has enough places for it. The places follow from `most_budget`,
    and there are at least `least`. A unit with `parts` that does not fit is cut, not skipped: as many of its parts are
    chosen as fit. So long units are chosen as often as short ones. `reuse`: the first `reuse` tokens of a row and the
    other tokens each get their share of the budget; a unit belongs to the half that it begins in (XLNet).
    """
    hideable = units >= 0
    most = places(most_budget, batch.shape[1], least=least)
    limit = ((hideable if of is None else of).sum(1, keepdim=True) * budget).round().clamp(1, most).long()
    key = chance.draw(units, seed, batch.row[:, None], visit[:, None], chance.purpose(purpose))
    if reuse is None:
        return _chosen(key, units, parts, limit, most)
    return _by_halves(key, units, parts, limit, most, reuse)


def _by_halves(key: Tensor, units: Tensor, parts: Tensor | None, limit: Tensor, most: int, reuse: int) -> Tensor:
    """B T, True on the chosen tokens. Units that begin in the first `reuse` tokens, and the others, are chosen separately.

    The share of the second half is rounded down, and the first half gets the rest: XLNet's 85 targets are 43 and 42.
    """
    first, length = first_place(units) < reuse, units.shape[1]
    count, total = ((units >= 0) & ~first).sum(1, keepdim=True), (units >= 0).sum(1, keepdim=True)
    places_after = most * (length - reuse) // length
    after = (limit * count // total.clamp(min=1)).clamp(max=places_after)
    before = (limit - after).clamp(max=most - places_after)
    chosen = _chosen(key, torch.where(first, units, -1), parts, before, most - places_after)
    return chosen | _chosen(key, torch.where(first, -1, units), parts, after, places_after)


def _chosen(key: Tensor, units: Tensor, parts: Tensor | None, limit: Tensor, most: int) -> Tensor:
    """B T, True on the chosen units: in the order of their keys, up to the limit. Units larger than `most` are skipped."""
    hideable = (units >= 0) & (limit > 0)
    size = _count(units if parts is None else parts, hideable)  # B T, of units, or of the parts that they are cut into
    # tokens that are never chosen go to the end: special tokens, and units that are larger than the number of places
    held = hideable & ((size if parts is None else _largest(size, units)) <= most)
    key, order = torch.where(held, key, _LAST).sort(dim=1, stable=True)
    held = key != _LAST
    if parts is None:
        taken = _that_fit(key, held, size.gather(1, order), limit)
    else:
        taken = _until_full(parts.gather(1, order), held, limit)
    return torch.zeros_like(taken).scatter(1, order, taken)


def _that_fit(key: Tensor, held: Tensor, size: Tensor, limit: Tensor) -> Tensor:
    """Whole units in their order. A unit that does not fit is skipped, and later units are still tried."""
    first = torch.ones_like(held)
    first[:, 1:] = key[:, 1:] != key[:, :-1]
    fits, taken = held, held & (key == key[:, :1])  # the first unit
    room = limit - (size * first * taken).sum(1, keepdim=True)
    for _ in range(_ROUNDS):
        fits = fits & ~taken & (size <= room)
        used = (size * first * fits).cumsum(1)  # tokens of this unit and of the units before it that fit
        more = fits & (used <= room)
        taken = taken | more
        room = room - (size * first * more).sum(1, keepdim=True)
    return taken


def _until_full(parts: Tensor, held: Tensor, limit: Tensor) -> Tensor:
    """Parts in the order of their units, up to the first part that does not fit."""
    used = _largest(held.cumsum(1) * held, parts)  # tokens of this part and of all parts before it
    return held & (used <= torch.maximum(limit, used[:, :1]))


def targets(batch: Batch, units: Tensor, chosen: Tensor, count: int) -> Targets:
    """The chosen tokens as targets, in order, in `count` places per row, with the start and end of their units."""
    rows, length = batch.shape
    where = torch.argsort(~chosen, dim=1, stable=True)[:, :count]  # the chosen tokens first, from left to right
    here = torch.arange(length, device=units.device).expand(batch.shape)
    slot = units.clamp(min=0)
    used = chosen & (units >= 0)
    start = torch.full_like(here, length).scatter_reduce(1, slot, torch.where(used, here, length), "amin")
    end = torch.full_like(here, -1).scatter_reduce(1, slot, torch.where(used, here, -1), "amax")
    unit = slot.gather(1, where)
    weight = chosen.gather(1, where)
    base = torch.arange(rows, device=units.device)[:, None] * length
    flat = (where + base).flatten()
    return Targets(
        where=flat,
        at=flat,
        ids=batch.ids.gather(1, where).flatten(),
        start=(torch.where(weight, start.gather(1, unit), where) + base).flatten(),
        end=(torch.where(weight, end.gather(1, unit), where) + base).flatten(),
        weight=weight.flatten().float(),
    )


def _count(units: Tensor, hideable: Tensor) -> Tensor:
    """B T, the number of hideable tokens in each token's unit."""
    slot = units.clamp(min=0)
    return torch.zeros_like(units).scatter_add(1, slot, hideable.long()).gather(1, slot)


def _largest(x: Tensor, units: Tensor) -> Tensor:
    """B T, the largest value among the tokens of each token's unit."""
    slot = units.clamp(min=0)
    return torch.zeros_like(x).scatter_reduce(1, slot, x, "amax").gather(1, slot)


def first_place(units: Tensor) -> Tensor:
    """B T, the place of the first token of each token's unit."""
    length = units.shape[1]
    place = torch.arange(length, device=units.device).expand(units.shape)
    slot, there = units.clamp(min=0), torch.where(units >= 0, place, length)
    return torch.full_like(units, length).scatter_reduce(1, slot, there, "amin").gather(1, slot)
