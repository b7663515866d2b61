"""Infill and Delete: replacements after which a row has fewer tokens. Only a decoder can write such a text back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask import chance
from unmask.axes import Need, Part, Way
from unmask.batch import Batch, Vocabulary
from unmask.errors import require
from unmask.hide.replace import of_vocabulary
from unmask.hide.source import NEW, Source, compact

_WRITTEN = Need("decoder rows", "it changes the number of tokens, so only a decoder can write the text back")


@dataclass(frozen=True)
class Infill(Part):
    """One [MASK] instead of each span. The model must find out how many tokens are missing.

    Paper: BART (Lewis et al. 2019). Needs: a mask token, and a decoder that writes the text. Produces: rows with fewer tokens.
    Used by: bart, over spans of tokens with Poisson lengths. Differs from Mask: a span of any length becomes one [MASK].

    Some spans are empty: there a [MASK] is inserted between two tokens. If a row has no room, it is not inserted.
    """

    empty: float = 0.05  # share of all spans that are empty; of lengths with a Poisson distribution of mean 3, 5%
    random: float = 0.0  # share of the [MASK]s that are random tokens instead (BART's code: 0.1)

    def __post_init__(self) -> None:
        for name in ("empty", "random"):
            value = getattr(self, name)
            require(
                0 <= value < 1,
                "hide.replace.{name} must be in [0, 1), got {value}: write 0.05 for 5%",
                name=name,
                value=value,
            )

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("mask token", "it replaces spans by [MASK]"), _WRITTEN)

    @property
    def purpose(self) -> str:
        return "choose"

    @property
    def shares(self) -> dict[Way, float]:
        return {"infilled": 1.0}

    @property
    def draw(self) -> Literal["token", "span"]:
        return "span"

    @property
    def keeps_places(self) -> bool:
        return False

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Source | None]:
        before = torch.where(chosen, units, -1).roll(1, 1)
        before[:, 0] = -1
        first = chosen & (units != before)  # the first token of each span becomes the [MASK]
        keep = batch.real & (~chosen | first)
        source = compact(keep, self._inserted(batch, first, keep, seed, visit), first)
        came = batch.ids.gather(1, source.place.clamp(min=0))
        return torch.where(source.place == NEW, self._masks(batch, vocabulary, seed, visit), came), source

    def _inserted(self, batch: Batch, first: Tensor, keep: Tensor, seed: int, visit: Tensor) -> Tensor:
        """B T, True on the tokens before which a mask is inserted: tokens that stay."""
        spans, text = first.sum(1, keepdim=True), batch.text.sum(1, keepdim=True).clamp(min=1)
        place = torch.arange(batch.shape[1], device=first.device).expand(batch.shape)
        dice = chance.uniform(place, seed, batch.row[:, None], visit[:, None], chance.purpose("insert"))
        found = batch.text & keep & ~first & (dice * text < spans * (self.empty / (1 - self.empty)))
        room = batch.shape[1] - keep.sum(1, keepdim=True)
        return found & (found.cumsum(1) <= room)

    def _masks(self, batch: Batch, vocabulary: Vocabulary, seed: int, visit: Tensor) -> Tensor:
        """B T, the token that stands at each place of the new row if it is new."""
        mask = torch.full_like(batch.ids, vocabulary.mask or 0)
        if not self.random:
            return mask
        address = (seed, batch.row[:, None], visit[:, None])
        place = torch.arange(batch.shape[1], device=mask.device).expand(batch.shape)
        drawn = chance.uniform(place, *address, chance.purpose("mask, random or keep")) < self.random
        number = chance.draw(place, *address, chance.purpose("random token"))
        return torch.where(drawn, of_vocabulary(number, vocabulary), mask)


@dataclass(frozen=True)
class Delete(Part):
    """Nothing: the chosen tokens are removed. The model must find out where tokens are missing.

    Paper: BART (Lewis et al. 2019). Needs: a decoder that writes the text. Produces: rows with fewer tokens.
    Used by: bart, as an option. Differs from Infill: the row does not show where something was removed.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        return (_WRITTEN,)

    @property
    def purpose(self) -> str:
        return "choose"

    @property
    def shares(self) -> dict[Way, float]:
        return {"deleted": 1.0}

    @property
    def draw(self) -> Literal["token", "span"]:
        return "token"

    @property
    def keeps_places(self) -> bool:
        return False

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Source | None]:
        none = torch.zeros_like(chosen)
        source = compact(batch.real & ~chosen, none, none)
        return batch.ids.gather(1, source.place.clamp(min=0)), source
