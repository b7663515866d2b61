"""Units: the pieces of text that are hidden as a whole. A unit maker gives every token the number of its unit; a token
with -1 is in no unit and is never hidden."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from unmask import chance
from unmask.axes import Need, Part
from unmask.batch import Batch, Vocabulary
from unmask.errors import require
from unmask.hide.lengths import Geometric, Lengths


class UnitMaker(Part):
    """Base class of unit makers. By default a unit is one word or token, has no parts, and there are no levels."""

    @property
    def longest(self) -> int:
        return 1

    @property
    def least(self) -> int:
        return 1

    @property
    def law(self) -> tuple[float, ...] | None:
        return None

    @property
    def levels(self) -> dict[str, float]:
        return {}

    def level(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        return None

    def parts(self, batch: Batch, seed: int, visit: Tensor) -> Tensor | None:
        return None


@dataclass(frozen=True)
class Tokens(UnitMaker):
    """Every token is a unit.

    Paper: BERT (Devlin et al. 2018). Needs: nothing. Produces: units of one token.
    Used by: bert, roberta, electra, structbert. Differs from Words: a word of several tokens may be hidden in part.
    """

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        places = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        return torch.where(batch.text, places, -1)


@dataclass(frozen=True)
class Words(UnitMaker):
    """Every word is a unit.

    Paper: BERT's whole-word release; BERT-wwm (Cui et al. 2019). Needs: word boundaries in the shards.
    Produces: units of one or more tokens. Used by: bert-wwm, bert-wwm-ext, and any recipe with hide.units=Words.
    Differs from Tokens: all tokens of a word are hidden together.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("column:word", "it hides whole words"),)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        return batch.columns["word"]


@dataclass(frozen=True)
class Spans(UnitMaker):
    """Spans: runs of a random number of neighbouring words, or of tokens.

    Paper: SpanBERT (Joshi et al. 2019); ALBERT's and UniLM's n-grams. Needs: what `of` needs.
    Produces: units whose lengths follow `lengths`. A unit is cut where its text ends, and where the row's budget ends.
    Used by: spanbert, albert, unilm, xlnet.
    Differs from Words: a unit may be several words; a row is divided into different spans at every visit.
    """

    of: Words | Tokens = field(default_factory=Words)  # what a span consists of
    lengths: Lengths = field(default_factory=Geometric)  # how many words or tokens a span has

    @property
    def longest(self) -> int:
        return len(self.lengths.shares)

    @property
    def law(self) -> tuple[float, ...]:
        return self.lengths.shares

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
        """The cumulative shares: a random number in [0, 1) is compared with them to get a length."""
        total, bounds = 0.0, []
        for share in self.lengths.shares[:-1]:
            total += share
            bounds.append(total)
        return bounds


@dataclass(frozen=True)
class Examples(UnitMaker):
    """The whole text of an example is a unit.

    Paper: MASS (Song et al. 2019), which hides one window of it. Needs: nothing. Produces: one unit in each example.
    Used by: the rule Window. Differs from Spans: a unit is not cut into several.
    """

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        return torch.where(batch.text, batch.example, -1)


@dataclass(frozen=True)
class Second(UnitMaker):
    """Every token of the second text is a unit. The special token that ends it is a unit too.

    Paper: UniLM (Dong et al. 2019), fine-tuning. Needs: pairs of texts. Produces: units of one token.
    Used by: models adapted to write. Differs from Tokens: the first text is never hidden; the end token of the second
    may be hidden, so that the model learns where to stop.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("pairs", "it hides the second of two texts"),)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        places = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        return torch.where(batch.real & (batch.segment > 0), places, -1)


@dataclass(frozen=True)
class Runs(UnitMaker):
    """Runs of a fixed number of neighbouring tokens. The start of the first run is random in each row.

    Paper: StructBERT (Wang et al. 2019). Needs: nothing. Produces: units of exactly `size` tokens.
    Used by: structbert, for its shuffled trigrams. Differs from Spans: all units have the same length; none is cut.
    """

    size: int = 3  # tokens in a run

    def __post_init__(self) -> None:
        require(self.size >= 2, "hide.units.size must be 2 or more tokens, got {size}", size=self.size)

    @property
    def longest(self) -> int:
        return self.size

    @property
    def least(self) -> int:
        return self.size

    @property
    def law(self) -> tuple[float, ...]:
        return (*[0.0] * (self.size - 1), 1.0)

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        first = chance.below(self.size, torch.zeros_like(batch.row), seed, batch.row, visit, chance.purpose("grid"))
        runs = joined((place + first[:, None]) // self.size, batch.text)
        slot = runs.clamp(min=0)
        whole = torch.zeros_like(runs).scatter_add(1, slot, (runs >= 0).long()).gather(1, slot) == self.size
        return torch.where(whole, runs, -1)


@dataclass(frozen=True)
class Levels(UnitMaker):
    """Each row takes one level: single tokens, phrases, or entities. A token belongs to its largest unit.

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
            (
                "hide.units must have token, phrase and entity shares of 0 or more, and at least one above 0, got "
                "{shares}: raise one of them"
            ),
            shares=shares,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        larger = self.phrase + self.entity
        shares = {"word": larger, "phrase": larger, "entity": self.entity}
        return tuple(Need(f"column:{name}", f"it hides {name} units") for name, share in shares.items() if share)

    @property
    def levels(self) -> dict[str, float]:
        """The share of rows that take each level."""
        shares = {"token": self.token, "phrase": self.phrase, "entity": self.entity}
        return {name: share / sum(shares.values()) for name, share in shares.items()}

    def label(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        phrase = _larger(batch.columns.get("phrase"), batch.columns["word"])
        level = self.level(batch, seed, visit)[:, None]
        unit = torch.where(level == 0, self.of.label(batch, seed, visit), phrase)
        unit = torch.where(level == 2, _larger(batch.columns.get("entity"), phrase), unit)
        return joined(unit, batch.text)

    def level(self, batch: Batch, seed: int, visit: Tensor) -> Tensor:
        """B, the level that each row takes: 0 the lowest, 1 phrases, 2 entities."""
        total = self.token + self.phrase + self.entity
        drawn = chance.uniform(batch.row, seed, visit, chance.purpose("level")) * total
        return (drawn >= self.token).long() + (drawn >= self.token + self.phrase)


def _larger(unit: Tensor | None, otherwise: Tensor) -> Tensor:
    """The number of the larger unit where there is one, otherwise of the other unit. The two ranges do not overlap."""
    if unit is None:
        return otherwise
    return torch.where(unit >= 0, unit, otherwise + otherwise.shape[1])


def ordinary(batch: Batch, vocabulary: Vocabulary) -> Tensor:
    """B T, True on the tokens of the text, except [UNK] and other special tokens in the text itself."""
    found = batch.text
    for special in vocabulary.special:
        found = found & (batch.ids != special)
    return found


def without_special(units: Tensor, parts: Tensor | None, special: Tensor) -> tuple[Tensor, Tensor | None]:
    """Units and their parts without those that contain a `special` token (B T), which are never hidden.

    A unit without parts is removed. A unit with parts loses the part, and is divided there.
    """
    if parts is None:
        return torch.where(_hold(units, special), -1, units), None
    left = (parts >= 0) & ~_hold(parts, special)
    return joined(units, left), torch.where(left, parts, -1)


def _hold(units: Tensor, special: Tensor) -> Tensor:
    """B T, whether each token's unit contains a special token."""
    slot = units.clamp(min=0)
    found = (special & (units >= 0)).long()
    return torch.zeros_like(units).scatter_reduce(1, slot, found, "amax").gather(1, slot) > 0


def joined(unit: Tensor, text: Tensor) -> Tensor:
    """B T, runs of neighbouring text tokens with the same unit, numbered from 0 in each row; -1 outside the text."""
    new = text.clone()
    new[:, 1:] &= (unit[:, 1:] != unit[:, :-1]) | ~text[:, :-1]
    return torch.where(text, new.cumsum(1) - 1, -1)
