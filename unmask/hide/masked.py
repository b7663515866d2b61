"""Masked: choose units of the text up to a budget, and put something else in their place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from unmask import curves
from unmask.axes import Curve, Part, Replace, Units
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.choice import choose, places, targets
from unmask.hide.replace import Mask, moved
from unmask.hide.units import Tokens, ordinary, without_special


@dataclass(frozen=True)
class Masked(Part):
    """Hide units of text and predict them.

    Paper: BERT (Devlin et al. 2018). Needs: what its units and its replacement need. Produces: the targets "tokens".
    Used by: every masked recipe. Differs from Next: hides a few tokens in place, and both sides stay visible.

    [UNK], and any other special token in the text, is never hidden: a unit that holds one is left out, and the budget is a
    share of the other tokens.
    """

    units: Units = field(default_factory=Tokens)  # what is hidden as a whole
    budget: float | Curve = 0.15  # share of a row's tokens to hide
    replace: Replace = field(default_factory=Mask)  # what stands in the text instead
    copies: int | None = None  # None: new choices at every visit; n: static masking with n versions of each row
    # the place whose vector predicts a hidden token: its own place, or the place before it (GPT-BERT)
    at: Literal["same", "before"] = "same"

    def __post_init__(self) -> None:
        for name, value in (("least", curves.least(self.budget)), ("most", curves.most(self.budget))):
            require(0 < value <= 1, f"hide.budget must be in (0, 1], its {name} is {value:g}: write 0.15 for 15%")
        require(self.copies is None or self.copies >= 1, f"hide.copies must be none or 1 or more, got {self.copies}")

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"targets:tokens", *(["one earlier"] if self.at == "before" else [])})

    @property
    def share(self) -> float:
        return curves.most(self.budget)

    @property
    def longest(self) -> int:
        return self.units.longest

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        visit = batch.visit if self.copies is None else batch.visit % self.copies
        text, hidden = ordinary(batch, vocabulary), already_hidden(batch)
        text = text if hidden is None else text | hidden  # what an earlier rule hides counts for the budget too
        free = batch if hidden is None else _without(batch, ~text | hidden)
        special = batch.text & ~text
        labels = self.units.label(free, seed, visit), self.units.parts(free, seed, visit)
        units, parts = without_special(*labels, special if hidden is None else special | hidden)
        chosen = choose(
            batch, units, curves.at(self.budget, batch.progress), self.share, seed, visit, parts=parts,
            of=None if hidden is None else text, purpose=self.replace.purpose, least=self.units.least, reuse=batch.reuse,
        )  # fmt: skip
        count = places(self.share, batch.shape[1], least=self.units.least)
        found = targets(batch, units, chosen, count)
        ids, source = self.replace.apply(batch, chosen, units, vocabulary, seed, visit)
        more = found if self.at == "same" else _one_before(found, batch)
        return moved(batch, ids, source).replace(targets=batch.targets | {"tokens": _joined(batch, more)})


def already_hidden(batch: Batch) -> Tensor | None:
    """B T, True on the tokens that an earlier rule hides; None if there is no earlier rule."""
    before = batch.targets.get("tokens")
    if before is None:
        return None
    count = batch.ids.numel()
    where = torch.where(before.weight > 0, before.where, count)  # an unused place may name a token that is not hidden
    return torch.zeros(count + 1, dtype=torch.bool, device=where.device).scatter(0, where, True)[:-1].view(batch.shape)


def _without(batch: Batch, blank: Tensor) -> Batch:
    """The batch for unit makers: these tokens belong to no word."""
    return batch.replace(columns=batch.columns | {"word": torch.where(blank, -1, batch.columns["word"])})


def _one_before(found: Targets, batch: Batch) -> Targets:
    """Predicted from the vector of the token before; a token that begins its example has none, and does not count."""
    before, example = (found.where - 1).clamp(min=0), batch.example.flatten()
    inside = (found.where % batch.shape[1] > 0) & (example[before] == example[found.where])
    return found.replace(at=before, weight=found.weight * inside)


def _joined(batch: Batch, found: Targets) -> Targets:
    """These targets behind those of earlier rules, row by row."""
    before, rows = batch.targets.get("tokens"), batch.shape[0]
    if before is None:
        return found
    pairs = {name: (getattr(before, name).view(rows, -1), getattr(found, name).view(rows, -1)) for name in vars(found)}
    return Targets(**{name: torch.cat(pair, 1).flatten() for name, pair in pairs.items()})
