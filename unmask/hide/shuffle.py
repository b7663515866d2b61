"""Shuffle: a few short runs of the text in another order, each token to be predicted where it stood."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Batch, Targets
from unmask.errors import require
from unmask.hide.choice import choose, first_place, places, targets
from unmask.hide.units import joined


@dataclass(frozen=True)
class Shuffle:
    """Runs of a fixed number of tokens, of those that are not hidden, in a random order.

    Paper: StructBERT (Wang et al. 2019). Needs: nothing. Produces: targets at every token of the chosen runs.
    Used by: structbert, as part of Mask. Differs from Mask: nothing is covered, only the order is lost.
    """

    budget: float = 0.0  # share of a row's tokens; 0 for none
    size: int = 3  # tokens in a run

    def __post_init__(self) -> None:
        require(0 <= self.budget <= 1, f"hide.shuffle.budget must be in [0, 1], got {self.budget}: write 0.05 for 5%")
        require(self.size >= 2, f"hide.shuffle.size must be 2 or more tokens, got {self.size}")

    def apply(self, batch: Batch, hidden: Tensor, seed: int, visit: Tensor) -> tuple[Tensor, Targets]:
        """The ids with some runs in another order, and what stood there; `hidden` tokens take no part."""
        address = (seed, batch.row[:, None], visit[:, None])
        place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        first = chance.below(self.size, torch.zeros_like(batch.row), seed, batch.row, visit, chance.purpose("grid"))
        text = batch.word >= 0
        runs = joined((place + first[:, None]) // self.size, text & ~hidden)
        slot = runs.clamp(min=0)
        whole = torch.zeros_like(runs).scatter_add(1, slot, (runs >= 0).long()).gather(1, slot) == self.size
        runs = torch.where(whole, runs, -1)
        chosen = choose(batch, runs, self.budget, seed, visit, of=text, purpose="choose shuffled", least=self.size)
        dice = chance.uniform(place, *address, chance.purpose("shuffle"))
        order = torch.where(chosen, first_place(runs) + self.size * dice, place).argsort(dim=1, stable=True)
        found = targets(batch, runs, chosen, places(self.budget, batch.shape[1], least=self.size))
        return batch.ids.gather(1, order), found
