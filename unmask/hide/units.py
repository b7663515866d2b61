"""Units: what is hidden as a whole. A unit maker labels every token with its unit; -1 is never hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unmask.batch import Batch


class Units(Protocol):
    """What a recipe's `hide.units` must be."""

    def label(self, batch: Batch) -> Tensor:
        """B T, the number of the unit in its row, from 0; -1 on special tokens and padding."""


@dataclass(frozen=True)
class Tokens:
    """Every token is a unit.

    Paper: BERT (Devlin et al. 2018). Needs: nothing. Produces: units of one token.
    Used by: bert, roberta. Differs from Words: a word of several tokens may be hidden in part.
    """

    def label(self, batch: Batch) -> Tensor:
        places = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
        return torch.where(batch.word >= 0, places, -1)


@dataclass(frozen=True)
class Words:
    """Every word is a unit.

    Paper: BERT's whole-word release; BERT-wwm (Cui et al. 2019). Needs: word boundaries in the shards.
    Produces: units of one or more tokens. Used by: any recipe, with hide.units=Words.
    Differs from Tokens: all tokens of a word are hidden together.
    """

    def label(self, batch: Batch) -> Tensor:
        return batch.word
