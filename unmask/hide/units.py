"""Units: what is hidden as a whole. A unit maker labels every token with its unit; -1 is never hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Batch, Vocabulary
from unmask.errors import require
from unmask.hide.lengths import Geometric, Lengths


class Units(Protocol):
    """What a recipe's `hide.units` must be."""

    @property
    def longest(self) -> int:
        """The most words, or tokens, that one unit may be made of; 1 where it is one by itself."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The boundaries that the shards must hold for it: word, phrase, entity."""

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        """B T, the number of the unit in its row, below T; -1 on special tokens and padding."""

    def parts(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        """B T, the same for the parts of units that are cut where the budget ends; None where they stay whole."""


class Whole:
    """What units have in common that are one thing each; those that need boundaries say so."""

    @property
    def longest(self) -> int:
        return 1

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def parts(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        return None


@dataclass(frozen=True)
class Tokens(Whole):
    """Every token is a unit.

    Paper: BERT (Devlin et al. 2018). Needs: nothing. Produces: units of one token.
    Used by: bert, roberta, electra, structbert. Differs from Words: a word of several tokens may be hidden in part.
    """

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        places = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        return torch.where(batch.word >= 0, places, -1)


@dataclass(frozen=True)
class Words(Whole):
    """Every word is a unit.

    Paper: BERT's whole-word release; BERT-wwm (Cui et al. 2019). Needs: word boundaries in the shards.
    Produces: units of one or more tokens. Used by: bert-wwm, bert-wwm-ext, and any recipe with hide.units=Words.
    Differs from Tokens: all tokens of a word are hidden together.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        return ("word",)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        return batch.word


@dataclass(frozen=True)
class Spans:
    """Runs of a random number of words, or of tokens, that lie side by side.

    Paper: SpanBERT (Joshi et al. 2019); ALBERT's and UniLM's n-grams. Needs: what its parts need.
    Produces: units whose lengths follow the given law, cut off where a text ends, and the last of a row where its budget
    does. Used by: spanbert, albert, unilm, xlnet.
    Differs from Words: a unit may be several words; the row is cut anew at every visit.
    """

    of: Words | Tokens = field(default_factory=Words)  # what a span is made of
    lengths: Lengths = field(default_factory=Geometric)  # how many of them

    @property
    def longest(self) -> int:
        return len(self.lengths.shares)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.of.columns

    def parts(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        return self.of.label(batch, seed, visit)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        part = self.of.label(batch, seed, visit)  # B T
        number = torch.arange(batch.shape[1], device=part.device).expand(batch.shape)
        chances = chance.uniform(number, seed, batch.row[:, None], visit[:, None], chance.purpose("span lengths"))
        lengths = torch.ones_like(part)
        for bound in self._bounds():
            lengths += chances >= bound
        ends = lengths.cumsum(1)  # B T, in parts
        tile = torch.searchsorted(ends, part.clamp(min=0).contiguous(), right=True)
        return joined(tile, part >= 0)

    def _bounds(self) -> list[float]:
        """Where a number drawn from [0, 1) crosses to the next length."""
        total, bounds = 0.0, []
        for share in self.lengths.shares[:-1]:
            total += share
            bounds.append(total)
        return bounds


@dataclass(frozen=True)
class Second(Whole):
    """Every token of the second text is a unit, and so is the special token that ends it.

    Paper: UniLM (Dong et al. 2019), fine-tuning. Needs: pairs of texts. Produces: units of one token.
    Used by: models adapted to write. Differs from Tokens: the first text is never hidden, the end of the second may be,
    so that the model learns where to stop.
    """

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        places = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        return torch.where(batch.real & (batch.segment > 0), places, -1)


@dataclass(frozen=True)
class Levels(Whole):
    """Each row takes one level: single tokens, phrases, or entities; a token counts to the largest unit that it has.

    Paper: ERNIE 1.0 (Sun et al. 2019). Needs: words and a lexicon in the shards (`prepare --lexicon`).
    Produces: at level phrase, phrases and the words between them; at level entity, entities, phrases and words.
    Used by: ernie. Differs from Words: units come from a lexicon and may be several words long.
    """

    token: float = 1.0  # how often a row takes the lowest level, relative to the others
    phrase: float = 1.0
    entity: float = 1.0
    of: Words | Tokens = field(default_factory=Tokens)  # the lowest level: tokens, as in Chinese; or words

    def __post_init__(self) -> None:
        shares = (self.token, self.phrase, self.entity)
        require(
            min(shares) >= 0 and sum(shares) > 0,
            f"hide.units: levels have shares of 0 or more, one above 0, got {shares}",
        )

    @property
    def columns(self) -> tuple[str, ...]:
        larger = self.phrase + self.entity
        known = {"word": larger + self.token * len(self.of.columns), "phrase": larger, "entity": self.entity}
        return tuple(name for name, share in known.items() if share)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        phrase = _larger(batch.phrase, batch.word)
        level = level_of(self, batch, seed, visit)[:, None]
        unit = torch.where(level == 0, self.of.label(batch, seed, visit), phrase)
        unit = torch.where(level == 2, _larger(batch.entity, phrase), unit)
        return joined(unit, batch.word >= 0)


def level_of(units: Levels, batch: Batch, seed: int, visit: Tensor) -> Tensor:
    """B, which level each row takes: 0 the lowest, 1 phrases, 2 entities."""
    total = units.token + units.phrase + units.entity
    drawn = chance.uniform(batch.row, seed, visit, chance.purpose("level")) * total
    return (drawn >= units.token).long() + (drawn >= units.token + units.phrase)


def _larger(unit: Tensor | None, otherwise: Tensor) -> Tensor:
    """The number of the larger unit where there is one; numbers of both kinds never meet."""
    if unit is None:
        return otherwise
    return torch.where(unit >= 0, unit, otherwise + otherwise.shape[1])


def ordinary(batch: Batch, vocabulary: Vocabulary) -> Tensor:
    """B T, True on the tokens of the text, without [UNK] and other special tokens that the text itself holds."""
    found = batch.word >= 0
    for special in vocabulary.special:
        found = found & (batch.ids != special)
    return found


def without_special(units: Tensor, parts: Tensor | None, special: Tensor) -> tuple[Tensor, Tensor | None]:
    """Units and their parts without those that hold a `special` token (B T): they are never hidden.

    A unit that stays whole is left out whole. A unit that is made of parts loses the part, and ends there.
    """
    if parts is None:
        return torch.where(_hold(units, special), -1, units), None
    left = (parts >= 0) & ~_hold(parts, special)
    return joined(units, left), torch.where(left, parts, -1)


def _hold(units: Tensor, special: Tensor) -> Tensor:
    """B T, whether each one's unit holds a special token."""
    slot = units.clamp(min=0)
    found = (special & (units >= 0)).long()
    return torch.zeros_like(units).scatter_reduce(1, slot, found, "amax").gather(1, slot) > 0


def joined(unit: Tensor, text: Tensor) -> Tensor:
    """Runs of one unit within one stretch of text, numbered from 0 in each row; -1 where there is no text."""
    new = text.clone()
    new[:, 1:] &= (unit[:, 1:] != unit[:, :-1]) | ~text[:, :-1]
    return torch.where(text, new.cumsum(1) - 1, -1)
