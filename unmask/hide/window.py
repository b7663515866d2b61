"""Window: one window of each example is hidden, and a decoder predicts it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask import chance, curves
from unmask.axes import Curve, InPlace, Need, Replace, Units
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.choice import targets
from unmask.hide.masked import version
from unmask.hide.replace import Mask
from unmask.hide.rule import Rule
from unmask.hide.units import Examples, ordinary
from unmask.see import LeftToRight


@dataclass(frozen=True)
class Window(Rule):
    """One window of neighbouring tokens in each example is hidden, and a decoder predicts it.

    Paper: MASS (Song et al. 2019). Needs: a backbone with a decoder. Produces: decoder rows that hold only the window; its
    tokens are the targets "tokens". Used by: mass. Differs from Rewrite: the decoder does not write what the encoder shows.

    Each token of the window keeps its position. There the decoder reads the token before it, if that is in the window too, and
    [MASK] otherwise. So a window of one token is BERT's prediction of a masked token, and a window of all tokens is GPT's
    prediction of the next one.
    """

    budget: float | Curve = 0.5  # share of an example's tokens in the window, at least one token
    replace: Replace = field(default_factory=Mask)  # what the hidden tokens are replaced by; it must keep their places
    start: float = 0.0  # share of the windows that are at the start of their example (MASS's code: 0.2)
    end: float = 0.0  # share of the windows that are at its end; all others are anywhere, with equal probability
    copies: int | None = None  # None: new choices at every visit; n: n versions of each row

    def __post_init__(self) -> None:
        for name, value in (("smallest", curves.least(self.budget)), ("largest", curves.most(self.budget))):
            require(
                0 < value <= 1,
                "hide.budget must be in (0, 1], its {name} value is {value:g}: write 0.5 for 50%",
                name=name,
                value=value,
            )
        require(
            min(self.start, self.end) >= 0 and self.start + self.end <= 1,
            "hide.start and hide.end must be shares of 0 or more that add up to at most 1, got {start:g} and {end:g}",
            start=self.start,
            end=self.end,
        )
        require(
            self.replace.keeps_places and "covered" in self.replace.gives,
            "hide.replace must hide tokens in their places, got {replace}: set hide.replace=Mask",
            replace=type(self.replace).__name__,
        )
        require(
            self.copies is None or self.copies >= 1,
            "hide.copies must be none or 1 or more, got {copies}",
            copies=self.copies,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        mask = Need("mask token", "its decoder reads [MASK] before the first token of a window")
        return (Need("decoder", "it lets a decoder predict the window"), mask)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"decoder rows", "targets:tokens", "single tokens"})

    @property
    def units(self) -> Units:
        """What it hides a window of."""
        return Examples()

    @property
    def in_place(self) -> InPlace | None:
        return self

    @property
    def share(self) -> float:
        return curves.most(self.budget)

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        chosen = self.chosen(batch, vocabulary, seed)
        visit = version(batch, self.copies)
        units = self.units.label(batch, seed, visit)
        ids, _ = self.replace.apply(batch, chosen, units, vocabulary, seed, visit)
        found = targets(batch, units, chosen, self._places(batch))
        return batch.replace(ids=ids, decoder=_decoder(batch, found, chosen, vocabulary.mask or 0))

    def rows_for_token(self, batch: Batch, place: Tensor, vocabulary: Vocabulary) -> Batch:
        """A window of one token."""
        chosen = torch.zeros_like(batch.text).scatter(1, place[:, None], True)
        found = targets(batch, self.units.label(batch, 0, batch.visit), chosen, 1)
        return _decoder(batch, found, chosen, vocabulary.mask or 0)

    def chosen(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor:
        text, slot = batch.text, batch.example.clamp(min=0)
        number = text.cumsum(1) - 1  # of each token in the text of its row
        none, most = torch.zeros_like(slot), batch.shape[1]
        size = none.scatter_add(1, slot, text.long()).gather(1, slot)
        number = number - (none + most).scatter_reduce(1, slot, torch.where(text, number, most), "amin").gather(1, slot)
        wide = (size * curves.at(self.budget, batch.progress)).round().long().clamp(min=1).minimum(size)
        first = self._first(batch, slot, size - wide, seed)
        return (number >= first) & (number < first + wide) & ordinary(batch, vocabulary)

    def _first(self, batch: Batch, slot: Tensor, last: Tensor, seed: int) -> Tensor:
        """B T, where the window of each token's example begins: a number from 0 to `last`. It is the same in an example."""
        address = (seed, batch.row[:, None], version(batch, self.copies)[:, None])
        anywhere = chance.below(last + 1, slot, *address, chance.purpose("window"))
        where = chance.uniform(slot, *address, chance.purpose("start or end"))
        return torch.where(where < self.start, 0, torch.where(where < self.start + self.end, last, anywhere))

    def _places(self, batch: Batch) -> int:
        """The number of places in a decoder row: enough for the windows of all examples, each rounded up."""
        rows, length = batch.shape
        return min(length, round(self.share * length) + batch.summary.numel() // rows)


def _decoder(batch: Batch, found: Targets, chosen: Tensor, mask: int) -> Batch:
    """The rows of the decoder: only the targets, each at its position, moved to the left."""
    rows, length = batch.shape
    where, real = found.where.view(rows, -1) % length, found.weight.view(rows, -1) > 0
    follows = chosen & F.pad(chosen[:, :-1], (1, 0)) & (batch.position > 0)
    before = torch.where(follows, F.pad(batch.ids[:, :-1], (1, 0)), mask)
    decoder = batch.replace(
        ids=torch.where(real, before.gather(1, where), mask),
        example=torch.where(real, batch.example.gather(1, where), -1),
        segment=batch.segment.gather(1, where),
        position=torch.where(real, batch.position.gather(1, where), 0),
        summary=torch.zeros_like(batch.summary),
        columns={},
        targets={"tokens": found.replace(at=torch.arange(len(found.at), device=where.device))},
    )
    return LeftToRight().apply(decoder)
