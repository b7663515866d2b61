"""Mask: hide chosen units behind [MASK], a random token or themselves; and Next, which hides nothing but the future."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask import chance
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.choice import choose, places, side_by_side, targets
from unmask.hide.shuffle import Shuffle
from unmask.hide.units import Tokens, Units, joined, ordinary, without_special


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

    [UNK], and any other special token in the text, is never hidden: a unit that holds one is left out, and the budget is a
    share of the other tokens. SpanBERT's program draws random tokens from its whole corpus, so by their frequency; the
    tokens of the row stand for the corpus here, because hiding depends on nothing but the row, the visit and the seed.
    """

    units: Units = field(default_factory=Tokens)  # what is hidden as a whole
    budget: float = 0.15  # share of a row's tokens to hide
    mask: float = 0.8  # share of chosen tokens, or runs of them, replaced by [MASK]
    random: float = 0.1  # share replaced by random tokens; the rest is kept as it is
    draw: Literal["token", "span"] = "token"  # what is replaced alike: each token by itself, or a run of hidden tokens
    random_from: Literal["vocabulary", "row"] = "vocabulary"  # random tokens are any, or one of the same row (SpanBERT)
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
        text = ordinary(batch, vocabulary)
        special = (batch.word >= 0) & ~text  # in the text itself
        labels = self.units.label(batch, seed, visit), self.units.parts(batch, seed, visit)
        units, parts = without_special(*labels, special)
        chosen = choose(batch, units, self.budget, seed, visit, parts=parts, reuse=batch.reuse)
        ids = self._replaced(batch, vocabulary, chosen, text, seed, visit)
        hidden = targets(batch, units, chosen, places(self.budget, batch.shape[1]))
        if not self.shuffle.budget:
            return batch.replace(ids=ids, targets=hidden)
        rest = batch.replace(ids=ids, word=torch.where(special, -1, batch.word))
        ids, moved = self.shuffle.apply(rest, chosen, seed, visit)
        return batch.replace(ids=ids, targets=side_by_side(hidden, moved, batch.shape[0]))

    def _replaced(
        self, batch: Batch, vocabulary: Vocabulary, chosen: Tensor, text: Tensor, seed: int, visit: Tensor
    ) -> Tensor:
        """B T, the ids with [MASK], a random token or the token itself where one is chosen."""
        address = (seed, batch.row[:, None], visit[:, None])
        place = torch.arange(batch.shape[1], device=chosen.device).expand(batch.shape)
        drawn = place if self.draw == "token" else joined(batch.example, chosen)
        how = chance.uniform(drawn, *address, chance.purpose("mask, random or keep"))
        number = chance.draw(place, *address, chance.purpose("random token"))
        if self.random_from == "vocabulary":
            swap = _of_vocabulary(number, vocabulary)
        else:
            swap = _of_row(number, batch.ids, text)
        ids = torch.where(how < self.mask + self.random, swap, batch.ids)
        ids = torch.where(how < self.mask, vocabulary.mask or 0, ids)
        return torch.where(chosen, ids, batch.ids)


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


def _of_vocabulary(number: Tensor, vocabulary: Vocabulary) -> Tensor:
    """For each number a token that is not special, all with equal chance."""
    number = number % (vocabulary.size - len(vocabulary.special))
    for special in vocabulary.special:  # step over each special id that lies at or below
        number = number + (number >= special)
    return number


def _of_row(number: Tensor, ids: Tensor, text: Tensor) -> Tensor:
    """For each number a token of the row's `text`, all places with equal chance; without any, the token itself."""
    count = text.sum(1, keepdim=True)
    slot = torch.where(text, text.cumsum(1) - 1, ids.shape[1])  # the others go behind the end
    tokens = F.pad(torch.zeros_like(ids), (0, 1)).scatter(1, slot, ids)
    return torch.where(count > 0, tokens.gather(1, number % count.clamp(min=1)), ids)
