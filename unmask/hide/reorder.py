"""PermuteSentences and Rotate: rules that change the order of the text. A decoder writes it in the right order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask import chance
from unmask.axes import Need
from unmask.batch import Batch, Vocabulary
from unmask.hide.rule import Rule
from unmask.hide.source import Source, moved, same

_WRITTEN = Need("decoder rows", "it changes the order of the text, so a decoder must write it in the right order")


class Reorder(Rule):
    """Base class: the tokens of each text change places with each other. Special tokens stay where they are."""

    @property
    def needs(self) -> tuple[Need, ...]:
        return (_WRITTEN,)

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        source = self.source(batch, vocabulary, seed)
        return moved(batch, batch.ids.gather(1, source.place), source, vocabulary.pad)

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source:
        raise NotImplementedError


@dataclass(frozen=True)
class PermuteSentences(Reorder):
    """All sentences of each example in a random order.

    Paper: BART (Lewis et al. 2019). Needs: a decoder that writes the text. Produces: the same tokens in another order.
    Used by: bart. Differs from Shuffle: whole sentences change places; inside a sentence the order stays.
    """

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source:
        text, sentence = batch.text, batch.columns["sentence"]
        address = (seed, batch.row[:, None], batch.visit[:, None])
        key = chance.draw(sentence, *address, chance.purpose("permute sentences"))
        order = key.argsort(dim=1, stable=True)  # by sentence; then by example, and the tokens outside the text last
        after = torch.where(text, batch.example, batch.shape[1]).gather(1, order)
        order = order.gather(1, after.argsort(dim=1, stable=True))
        return same(_put(order, text))


@dataclass(frozen=True)
class Rotate(Reorder):
    """Each example begins with one of its tokens, drawn at random. What was before it comes at the end.

    Paper: BART (Lewis et al. 2019). Needs: a decoder that writes the text. Produces: the same tokens, rotated.
    Used by: bart, as an option. Differs from PermuteSentences: the order of neighbours stays, except at one place.
    """

    def source(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Source:
        text, slot, length = batch.text, batch.example.clamp(min=0), batch.shape[1]
        number = text.cumsum(1) - 1  # of each token in the text of its row
        none = torch.zeros_like(slot)
        size = none.scatter_add(1, slot, text.long()).gather(1, slot).clamp(min=1)
        first = (none + length).scatter_reduce(1, slot, torch.where(text, number, length), "amin").gather(1, slot)
        address = (seed, batch.row[:, None], batch.visit[:, None])
        turn = chance.below(size, slot, *address, chance.purpose("rotate"))
        turned = torch.where(text, first + (number - first + turn) % size, 0)
        places = (~text).long().argsort(dim=1, stable=True)  # the places of the text, in order
        here = torch.arange(length, device=text.device).expand(text.shape)
        return same(torch.where(text, places.gather(1, turned), here))


def _put(order: Tensor, text: Tensor) -> Tensor:
    """B T, the source of each place: the places of the text get the tokens in this order, all others keep their own."""
    places = (
        (~text).long().argsort(dim=1, stable=True)
    )  # the places of the text, in order; `order` begins with its tokens
    here = torch.arange(text.shape[1], device=text.device).expand(text.shape)
    return torch.where(text, torch.zeros_like(order).scatter(1, places, order), here)
