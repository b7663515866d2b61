"""Rewrite: a decoder writes the whole text, from what the other rules leave of it. WriteSecond: it writes the second of two
texts from the first."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask import tree
from unmask.axes import Need
from unmask.batch import Batch, Targets, Vocabulary
from unmask.hide.rule import Rule
from unmask.hide.source import Source, compact, moved
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
        return frozenset({"decoder rows", "targets:tokens", "from before", "single tokens"})

    @property
    def share(self) -> float:
        return 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        return batch.replace(decoder=_decoder(batch, _every_place(batch), vocabulary))

    def rows_for_token(self, batch: Batch, place: Tensor, vocabulary: Vocabulary) -> Batch:
        """The decoder reads the whole text, but a token is predicted from the tokens before it alone."""
        decoder = _decoder(batch, _every_place(batch), vocabulary)
        one = torch.arange(len(place), device=place.device) * batch.shape[1] + place
        return decoder.replace(targets={"tokens": tree.mapped(decoder.targets["tokens"], lambda field: field[one])})


@dataclass(frozen=True)
class WriteSecond(Rule):
    """The encoder reads the first of two texts, and a decoder writes the second from left to right.

    Paper: Transformer (Vaswani et al. 2017). Needs: pairs, and a backbone with a decoder. Produces: decoder rows, in which every
    token of the second text is a target "tokens". Used by: transformer, and models with a decoder that are adapted to write.
    Differs from Rewrite: the decoder writes another text than the encoder reads.
    """

    halves: bool = False  # each text fills at most half of its row, so both have rows of half the length

    @property
    def needs(self) -> tuple[Need, ...]:
        two = Need("pairs", "it lets a decoder write the second of two texts")
        half = Need("halves", "it puts each text into half a row", unless="halves=false")
        return (Need("decoder", "it lets a decoder write the second text"), two) + (half,) * self.halves

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"decoder rows", "targets:tokens", "from before", "second text"})

    @property
    def share(self) -> float:
        return 0.5 if self.halves else 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        first, second = (self._side(batch, side, vocabulary) for side in (0, 1))
        row = torch.arange(batch.shape[0], device=batch.ids.device)[:, None]
        where = row * batch.shape[1] + self._source(batch, 1).place.clamp(min=0)
        return first.replace(decoder=_decoder(second, where.flatten(), vocabulary))

    def chosen(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Tensor:
        return batch.real & (batch.segment == 1)

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source:
        return self._source(batch, 0)

    def _source(self, batch: Batch, side: int) -> Source:
        """Where the tokens of one of the texts came from. The rows are only as long as needed, as far as that is known."""
        mine = batch.real & (batch.segment == side)
        none = torch.zeros_like(mine)
        found = compact(mine, none, none)
        usual = batch.shape[1] // 2 if self.halves else batch.shape[1]
        width = usual if batch.sides is None else batch.sides[side]
        return Source(found.place[:, :width], found.like[:, :width])

    def _side(self, batch: Batch, side: int, vocabulary: Vocabulary) -> Batch:
        """Rows that contain only one of the texts. A summary token that is not in it is replaced by its last token."""
        source = self._source(batch, side)
        found = moved(batch, batch.ids.gather(1, source.place.clamp(min=0)), source, vocabulary.pad)
        kept = (batch.segment == side).flatten()[batch.summary]
        return found.replace(summary=torch.where(kept, found.summary, _ends(found)), sides=None)


def _decoder(batch: Batch, where: Tensor, vocabulary: Vocabulary) -> Batch:
    """The rows of a decoder that writes these texts. `where`: the flat index of each token before any rule changed the text."""
    found = Targets(where, _every_place(batch), batch.ids.flatten(), where, where, batch.real.flatten().float())
    decoder = batch.replace(
        ids=_shifted(batch, vocabulary), summary=_ends(batch), columns={}, targets={"tokens": found}
    )
    return LeftToRight().apply(decoder)


def _every_place(batch: Batch) -> Tensor:
    """The flat index of every token."""
    return torch.arange(batch.ids.numel(), device=batch.ids.device)


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
