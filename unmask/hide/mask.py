"""Mask: hide chosen units behind [MASK], a random token or themselves; and Next, which hides nothing but the future."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch

from unmask import chance
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.choose import choose, places, side_by_side, targets
from unmask.hide.shuffle import Shuffle
from unmask.hide.units import Tokens, Units


class Hide(Protocol):
    """What a recipe's `hide` must be: a pure function from a batch to the same batch with targets."""

    @property
    def needs_mask(self) -> bool:
        """Whether the tokenizer must have a mask token."""

    @property
    def share(self) -> float:
        """Predictions per token of a row, at the most."""

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch: ...


@dataclass(frozen=True)
class Mask:
    """Hide units of text and predict them where they stood.

    Paper: BERT (Devlin et al. 2018). Needs: a mask token. Produces: targets at the chosen tokens.
    Used by: every masked recipe. Differs from Next: hides a few tokens in place, and both sides stay visible.
    """

    units: Units = field(default_factory=Tokens)  # what is hidden as a whole
    budget: float = 0.15  # share of a row's tokens to hide
    mask: float = 0.8  # share of chosen units replaced by [MASK]
    random: float = 0.1  # share replaced by random tokens; the rest is kept as it is
    copies: int | None = None  # None: new choices at every visit; n: static masking with n versions of each row
    shuffle: Shuffle = field(default_factory=Shuffle)  # what is left is also put in another order (StructBERT)

    def __post_init__(self) -> None:
        require(0 < self.budget <= 1, f"hide.budget must be in (0, 1], got {self.budget}: write 0.15 for 15%")
        for name in ("mask", "random"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"hide.{name} must be in [0, 1], got {value}: write 0.8 for 80%")
        require(
            self.mask + self.random <= 1, f"hide.mask + hide.random must be at most 1, got {self.mask + self.random:g}"
        )
        require(self.copies is None or self.copies >= 1, f"hide.copies must be none or 1 or more, got {self.copies}")

    @property
    def needs_mask(self) -> bool:
        return self.mask > 0

    @property
    def share(self) -> float:
        return self.budget + self.shuffle.budget

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        visit = batch.visit if self.copies is None else batch.visit % self.copies
        units = self.units.label(batch, seed, visit)
        chosen = choose(batch, units, self.budget, seed, visit, parts=self.units.parts(batch, seed, visit))
        address = (seed, batch.row[:, None], visit[:, None])
        how = chance.uniform(units, *address, chance.purpose("mask, random or keep"))  # one draw per unit
        place = torch.arange(batch.shape[1], device=units.device).expand(batch.shape)
        ids = torch.where(chosen & (how < self.mask), vocabulary.mask or 0, batch.ids)
        swapped = chosen & (how >= self.mask) & (how < self.mask + self.random)
        number = chance.below(
            vocabulary.size - len(vocabulary.special), place, *address, chance.purpose("random token")
        )
        ids = torch.where(swapped, _ordinary(number, vocabulary), ids)
        hidden = targets(batch, units, chosen, places(self.budget, batch.shape[1]))
        if not self.shuffle.budget:
            return batch.replace(ids=ids, targets=hidden)
        ids, moved = self.shuffle.apply(batch.replace(ids=ids), chosen, seed, visit)
        return batch.replace(ids=ids, targets=side_by_side(hidden, moved, batch.shape[0]))


@dataclass(frozen=True)
class Next:
    """Every token predicts the one after it; `see` must hide the future.

    Paper: GPT (Radford et al. 2018). Needs: a left-to-right view. Produces: a target at every token but the last, and
    further ones. Used by: gpt, gpt2, char-transformer, transformer-xl. Differs from Mask: the text itself stays as it is.
    """

    ahead: int = 1  # how many tokens ahead there are targets for; 2: the one after the next, too

    def __post_init__(self) -> None:
        require(self.ahead >= 1, f"hide.ahead must be 1 or more, got {self.ahead}")

    @property
    def needs_mask(self) -> bool:
        return False

    @property
    def share(self) -> float:
        return 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        first, *further = (_ahead(batch, count) for count in range(1, self.ahead + 1))
        return batch.replace(targets=first, further=tuple(further))


@dataclass(frozen=True)
class Nothing:
    """Hide nothing: the example's label is what is predicted.

    Paper: every fine-tuning. Needs: labels. Produces: no targets. Used by: adapted models.
    Differs from Next: the text is not predicted at all.
    """

    @property
    def needs_mask(self) -> bool:
        return False

    @property
    def share(self) -> float:
        return 0.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        return batch


def _ahead(batch: Batch, count: int) -> Targets:
    """At every token the one that stands so many further on, where that belongs to the same example."""
    rows, length = batch.shape
    here = torch.arange(rows * length, device=batch.ids.device).view(rows, length)[:, :-count].flatten()
    same = batch.real[:, count:] & (batch.example[:, count:] == batch.example[:, :-count])
    there = here + count
    return Targets(
        where=here, ids=batch.ids[:, count:].flatten(), start=there, end=there, weight=same.flatten().float()
    )


def _ordinary(number: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
    """The number-th token that is not special: step over each special id that lies at or below."""
    for special in vocabulary.special:
        number = number + (number >= special)
    return number
