"""Rewrite: a decoder writes the whole text, from what the other rules leave of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.axes import Need
from unmask.batch import Batch, Targets, Vocabulary
from unmask.hide.rule import Rule
from unmask.see import LeftToRight


@dataclass(frozen=True)
class Rewrite(Rule):
    """A decoder writes the text as it is now, from left to right. Later rules change only what the encoder reads.

    Paper: BART (Lewis et al. 2019). Needs: a backbone with a decoder. Produces: decoder rows, in which every token of the text
    is a target "tokens". Used by: bart. Differs from Next: the encoder sees both sides of the changed text.

    The decoder begins with the token that ends a text, and reads each token one place later than it writes it.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("decoder", "it lets a decoder write the text"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"decoder rows", "targets:tokens", "from before"})

    @property
    def share(self) -> float:
        return 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        here = torch.arange(batch.ids.numel(), device=batch.ids.device)
        found = Targets(here, here, batch.ids.flatten(), here, here, batch.real.flatten().float())
        decoder = batch.replace(
            ids=_shifted(batch, vocabulary), summary=_ends(batch), columns={}, targets={"tokens": found}
        )
        return batch.replace(decoder=LeftToRight().apply(decoder))


def _shifted(batch: Batch, vocabulary: Vocabulary) -> Tensor:
    """B T, the token before each token of its example. Before the first there is the token that ends a text."""
    assert vocabulary.end is not None, "the tokenizer has no token that ends a text"
    before = F.pad(batch.ids[:, :-1], (1, 0))
    begins = torch.ones_like(batch.real)
    begins[:, 1:] = batch.example[:, 1:] != batch.example[:, :-1]
    return torch.where(batch.real, torch.where(begins, vocabulary.end, before), vocabulary.pad)


def _ends(batch: Batch) -> Tensor:
    """The flat index of the last token of each example: only there the decoder has read the whole text."""
    rows, length = batch.shape
    places = batch.summary.numel() // rows  # for examples, in a row
    here = torch.arange(length, device=batch.ids.device).expand(batch.shape)
    slot = torch.where(batch.real, batch.example, places)
    last = torch.zeros(rows, places + 1, dtype=torch.long, device=here.device).scatter_reduce(1, slot, here, "amax")
    flat = last[:, :-1] + torch.arange(rows, device=here.device)[:, None] * length
    return flat.view(batch.summary.shape)
