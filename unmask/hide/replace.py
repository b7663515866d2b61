"""Replace: what the chosen tokens of the text are replaced by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask import chance
from unmask.axes import Need, Part, Way
from unmask.batch import Batch, Vocabulary
from unmask.errors import require
from unmask.hide.choice import first_place
from unmask.hide.source import Source, same
from unmask.hide.units import joined, ordinary


@dataclass(frozen=True)
class Mask(Part):
    """[MASK], a random token, or the token itself.

    Paper: BERT (Devlin et al. 2018). Needs: a mask token. Produces: tokens that are replaced in place.
    Used by: bert and most masked recipes. Differs from Keep: the text no longer shows what is predicted.

    SpanBERT's code draws random tokens from its whole corpus, so frequent tokens are more likely. Here they are drawn
    from the row (`random_from="row"`), because hiding may depend only on the row, the visit and the seed.
    """

    mask: float = 0.8  # share of chosen tokens, or runs of them, replaced by [MASK]
    random: float = 0.1  # share replaced by random tokens; the other chosen tokens stay as they are
    draw: Literal["token", "span"] = "token"  # one draw for each token, or one for each run of chosen tokens
    random_from: Literal["vocabulary", "row"] = "vocabulary"  # where random tokens are drawn from (SpanBERT: the row)

    def __post_init__(self) -> None:
        for name in ("mask", "random"):
            value = getattr(self, name)
            require(
                0 <= value <= 1,
                "hide.replace.{name} must be in [0, 1], got {value}: write 0.8 for 80%",
                name=name,
                value=value,
            )
        require(
            0 < self.mask + self.random <= 1,
            (
                "hide.replace.mask + hide.replace.random must be over 0 and at most 1, got {mask:g}: to leave all "
                "tokens as they are, set hide.replace=Keep"
            ),
            mask=self.mask + self.random,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("mask token", "it replaces tokens by [MASK]", "mask=0"),) if self.mask else ()

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"covered"})

    @property
    def purpose(self) -> str:
        return "choose"

    @property
    def keeps_places(self) -> bool:
        return True

    @property
    def shares(self) -> dict[Way, float]:
        return {"mask": self.mask, "random": self.random, "keep": 1 - self.mask - self.random}

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Source | None]:
        address = (seed, batch.row[:, None], visit[:, None])
        place = torch.arange(batch.shape[1], device=chosen.device).expand(batch.shape)
        drawn = place if self.draw == "token" else joined(batch.example, chosen)
        how = chance.uniform(drawn, *address, chance.purpose("mask, random or keep"))
        number = chance.draw(place, *address, chance.purpose("random token"))
        if self.random_from == "vocabulary":
            swap = of_vocabulary(number, vocabulary)
        else:
            swap = _of_row(number, batch.ids, ordinary(batch, vocabulary))
        ids = torch.where(how < self.mask + self.random, swap, batch.ids)
        ids = torch.where(how < self.mask, vocabulary.mask or 0, ids)
        return torch.where(chosen, ids, batch.ids), None


@dataclass(frozen=True)
class Keep(Part):
    """The tokens themselves: nothing is replaced.

    Paper: XLNet (Yang et al. 2019). Needs: nothing. Produces: the text as it is. Used by: xlnet, whose second stream does
    not see the token that it predicts. Differs from Mask: the text still shows what is predicted.
    """

    @property
    def purpose(self) -> str:
        return "choose"

    @property
    def keeps_places(self) -> bool:
        return True

    @property
    def shares(self) -> dict[Way, float]:
        return {"keep": 1.0}

    @property
    def draw(self) -> Literal["token", "span"]:
        return "token"

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Source | None]:
        return batch.ids, None


@dataclass(frozen=True)
class Shuffle(Part):
    """The tokens of each unit in a random order.

    Paper: StructBERT (Wang et al. 2019). Needs: nothing. Produces: units whose tokens changed places.
    Used by: structbert, over runs of three tokens. Differs from Mask: all tokens stay, only their order is lost.
    """

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"covered"})

    @property
    def purpose(self) -> str:
        return "choose shuffled"

    @property
    def keeps_places(self) -> bool:
        return True

    @property
    def shares(self) -> dict[Way, float]:
        return {"moved": 1.0}

    @property
    def draw(self) -> Literal["token", "span"]:
        return "token"

    def apply(
        self, batch: Batch, chosen: Tensor, units: Tensor, vocabulary: Vocabulary, seed: int, visit: Tensor
    ) -> tuple[Tensor, Source | None]:
        place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        dice = chance.uniform(place, seed, batch.row[:, None], visit[:, None], chance.purpose("shuffle"))
        size = (
            torch.zeros_like(units)
            .scatter_add(1, units.clamp(min=0), (units >= 0).long())
            .gather(1, units.clamp(min=0))
        )
        order = torch.where(chosen, first_place(units) + size * dice, place).argsort(dim=1, stable=True)
        return batch.ids.gather(1, order), same(order)


def of_vocabulary(number: Tensor, vocabulary: Vocabulary) -> Tensor:
    """For each random number an ordinary token; all have the same probability."""
    number = number % (vocabulary.size - len(vocabulary.special))
    for special in vocabulary.special:  # skip each special id that is not larger
        number = number + (number >= special)
    return number


def _of_row(number: Tensor, ids: Tensor, text: Tensor) -> Tensor:
    """For each random number a token of the row, where `text` is True; all places have the same probability.

    In a row without such tokens, the token itself."""
    count = text.sum(1, keepdim=True)
    slot = torch.where(text, text.cumsum(1) - 1, ids.shape[1])  # other tokens are written after the end
    tokens = F.pad(torch.zeros_like(ids), (0, 1)).scatter(1, slot, ids)
    return torch.where(count > 0, tokens.gather(1, number % count.clamp(min=1)), ids)
