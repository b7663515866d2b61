"""Rule: the base class of the rules of `hide`."""

from __future__ import annotations

from torch import Tensor

from unmask.axes import InPlace, Part
from unmask.batch import Batch, Vocabulary
from unmask.hide.source import Source


class Rule(Part):
    """By default a rule hides and predicts nothing, and every token stays where it is."""

    @property
    def share(self) -> float:
        return 0.0

    @property
    def longest(self) -> int:
        return 1

    @property
    def in_place(self) -> InPlace | None:
        return None

    def chosen(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor | None:
        return None

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source | None:
        return None

    def rows_for_token(self, batch: Batch, place: Tensor, vocabulary: Vocabulary) -> Batch:
        raise NotImplementedError
