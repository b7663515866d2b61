"""Masked: choose units of the text up to a budget, and replace them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

import torch
from torch import Tensor

from unmask import curves
from unmask.axes import Curve, InPlace, Need, Replace, Units
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.choice import choose, places, targets
from unmask.hide.replace import Mask
from unmask.hide.rule import Rule
from unmask.hide.source import Source, moved
from unmask.hide.units import Tokens, ordinary, without_special

_FIELDS = tuple(field.name for field in fields(Targets))


@dataclass(frozen=True)
class Masked(Rule):
    """Hide units of text and predict them.

    Paper: BERT (Devlin et al. 2018). Needs: what its units and its replacement need. Produces: the targets "tokens".
    Used by: every masked recipe. Differs from Next: it replaces a few tokens in the text, and both sides stay visible.

    [UNK], and any other special token in the text, is never hidden: a unit that contains one is never chosen, and the
    budget is a share of the other tokens.
    """

    units: Units = field(default_factory=Tokens)  # what is hidden as a whole
    budget: float | Curve = 0.15  # share of a row's tokens to hide
    replace: Replace = field(default_factory=Mask)  # what the hidden tokens are replaced by
    copies: int | None = None  # None: new choices at every visit; n: static masking with n versions of each row
    # which vector predicts a hidden token: the vector at the token, or the vector before it (GPT-BERT); none: no vector,
    # because a decoder writes the whole text (BART)
    at: Literal["same", "before", "none"] = "same"

    def __post_init__(self) -> None:
        for name, value in (("smallest", curves.least(self.budget)), ("largest", curves.most(self.budget))):
            require(
                0 < value <= 1,
                ("hide.budget must be in (0, 1], its {name} value is {value:g}: write 0.15 for 15%"),
                name=name,
                value=value,
            )
        require(
            self.copies is None or self.copies >= 1,
            "hide.copies must be none or 1 or more, got {copies}",
            copies=self.copies,
        )
        require(
            self.at == "none" or self.replace.keeps_places,
            "hide.replace={replace} removes tokens, so no vector stands at their places, got at={at}: set at=none, after a rule "
            "that lets a decoder write the text, such as hide=(Rewrite, Masked(replace={replace}, at=none))",
            replace=type(self.replace).__name__,
            at=self.at,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        before = Need("covered|future hidden", "it predicts each token from the position before it", "at=same")
        written = Need("decoder rows", "it does not predict what it hides", "at=same")
        return {"same": (), "before": (before,), "none": (written,)}[self.at]

    @property
    def gives(self) -> frozenset[str]:
        more = {"same": (), "before": ("one earlier", "from before"), "none": ()}[self.at]
        return frozenset({"targets:tokens", "in the text", *more} if self.at != "none" else ())

    @property
    def share(self) -> float:
        return 0.0 if self.at == "none" else curves.most(self.budget)

    @property
    def longest(self) -> int:
        return self.units.longest

    @property
    def in_place(self) -> InPlace | None:
        return self

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        units, chosen = self._choose(batch, vocabulary, seed)
        ids, source = self.replace.apply(batch, chosen, units, vocabulary, seed, version(batch, self.copies))
        changed = moved(batch, ids, source, vocabulary.pad)
        if self.at == "none":
            return changed
        count = places(self.share, batch.shape[1], least=self.units.least)
        found = targets(batch, units, chosen, count)
        more = found if self.at == "same" else _one_before(found, batch)
        return changed.replace(targets=batch.targets | {"tokens": _joined(batch, more)})

    def _choose(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> tuple[Tensor, Tensor]:
        """B T each: the number of each token's unit, and True on the tokens that are hidden."""
        visit = version(batch, self.copies)
        text, hidden = ordinary(batch, vocabulary), already_hidden(batch)
        text = text if hidden is None else text | hidden  # the budget is a share of these tokens, hidden ones included
        free = batch if hidden is None else _without(batch, ~text | hidden)
        special = batch.text & ~text
        if self.at == "before":
            special = special | (batch.text & (batch.position == 0))  # no token is before the first: it is never hidden
        labels = self.units.label(free, seed, visit), self.units.parts(free, seed, visit)
        units, parts = without_special(*labels, special if hidden is None else special | hidden)
        chosen = choose(
            batch, units, curves.at(self.budget, batch.progress), curves.most(self.budget), seed, visit, parts=parts,
            of=None if hidden is None else text, purpose=self.replace.purpose, least=self.units.least, reuse=batch.reuse,
        )  # fmt: skip
        return units, chosen

    def chosen(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor:
        return self._choose(batch, vocabulary, seed)[1]

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source | None:
        units, chosen = self._choose(batch, vocabulary, seed)
        return self.replace.apply(batch, chosen, units, vocabulary, seed, version(batch, self.copies))[1]


def version(batch: Batch, copies: int | None) -> Tensor:
    """B, the number that the choices in each row depend on: the visit, or with static masking the version of the row."""
    return batch.visit if copies is None else batch.visit % copies


def already_hidden(batch: Batch) -> Tensor | None:
    """B T, True on the tokens that an earlier rule hides; None if there is no earlier rule."""
    before = batch.targets.get("tokens")
    if before is None:
        return None
    count = batch.ids.numel()
    where = torch.where(
        before.weight > 0, before.where, count
    )  # an unused place may point to a token that is not hidden
    return torch.zeros(count + 1, dtype=torch.bool, device=where.device).scatter(0, where, True)[:-1].view(batch.shape)


def _without(batch: Batch, blank: Tensor) -> Batch:
    """The batch for unit makers, in which these tokens belong to no word."""
    return batch.replace(columns=batch.columns | {"word": torch.where(blank, -1, batch.columns["word"])})


def _one_before(found: Targets, batch: Batch) -> Targets:
    """The targets, predicted from the vector of the token before. The first token of an example gets weight 0."""
    before, example = (found.where - 1).clamp(min=0), batch.example.flatten()
    inside = (found.where % batch.shape[1] > 0) & (example[before] == example[found.where])
    return found.replace(at=before, weight=found.weight * inside)


def _joined(batch: Batch, found: Targets) -> Targets:
    """The targets of earlier rules, followed by these, row by row."""
    before, rows = batch.targets.get("tokens"), batch.shape[0]
    if before is None:
        return found
    pairs = {name: (getattr(before, name).view(rows, -1), getattr(found, name).view(rows, -1)) for name in _FIELDS}
    return Targets(**{name: torch.cat(pair, 1).flatten() for name, pair in pairs.items()})
