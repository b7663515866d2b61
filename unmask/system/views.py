"""Views: the parts of a text that students may read (cross-view training, Clark et al. 2018).

A view gives the vectors that the head of a student reads in place of those of the whole network, and a weight for each answer: 0 where
the view has nothing to say. Answers are the tags of words, or the classes of examples.

| view | a word at place t | an example |
|---|---|---|
| forward | the text up to t | its first half |
| backward | the text from t on | its second half |
| future | the text before the word | |
| past | the text after the word | |
| full | the whole text (only in the paper's code) | the whole text |
| masked | the text with some spans hidden | the same |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unmask.axes import Hide
from unmask.batch import Batch, Hidden
from unmask.predict.tags import PLACE

View = Literal["forward", "backward", "future", "past", "full", "masked"]
ONE_WAY: tuple[View, ...] = ("forward", "backward", "future", "past")  # they read one direction of a network
OF_WORDS: tuple[View, ...] = ("future", "past")  # they predict the tag of a neighbour
Answers = Literal["words", "examples"]


@dataclass(frozen=True)
class Reading:
    """What a student reads."""

    hidden: Hidden
    batch: Batch


@dataclass(frozen=True)
class Viewer:
    """Reads the views of a network."""

    answers: Answers
    layer: int | None = None  # the layer with one half for each direction; None: there is none
    token: Literal["first", "last"] = "first"  # the token of a word that its tag is predicted from
    hide: Hide | None = None  # what the view `masked` hides

    def read(self, view: View, system: Any, batch: Batch, whole: Reading) -> Reading:
        """What a student of this view reads. `batch`: as it was loaded. `whole`: what the network makes of it."""
        if view == "full":
            return whole
        if view == "masked":
            return self._masked(system, batch)
        return Reading(Hidden((self._one_way(view, whole),)), whole.batch)

    def weight(self, view: View, batch: Batch) -> Tensor:
        """1.0 for each answer that the view learns, otherwise 0.0: B T for words, E for examples."""
        if self.answers == "examples":
            return batch.counted
        words, before, after = neighbours(batch)
        if view in OF_WORDS:
            words = words & (before >= 0 if view == "future" else after < batch.shape[1])
        return words.float()

    def _masked(self, system: Any, batch: Batch) -> Reading:
        assert self.hide is not None
        hidden = self.hide.apply(batch, system.vocabulary, system.seed)
        read = system.read(hidden.replace(targets={}))
        return Reading(system.vectors(read)[0], read)

    def _one_way(self, view: View, whole: Reading) -> Tensor:
        """B T D, for each token the vector of one direction that the view reads."""
        assert self.layer is not None
        left, right = whole.hidden.layers[self.layer].chunk(2, -1)
        side = left if view in ("forward", "future") else right
        at = self._places(view, whole.batch)
        return side if at is None else side.gather(1, at[..., None].expand(-1, -1, side.shape[2]))

    def _places(self, view: View, batch: Batch) -> Tensor | None:
        """B T, the place whose vector each token reads; None: its own."""
        length = batch.shape[1]
        if self.answers == "examples":  # all tokens read one vector, so the head may pool them as it likes
            middle = halves(batch)
            at = middle if view == "forward" else (middle + 1).clamp(max=length - 1)
            return at[:, None].expand(-1, length)
        if view not in OF_WORDS:
            return None
        _, before, after = neighbours(batch)
        here = torch.arange(length, device=batch.ids.device).expand(batch.shape)
        if view == "future":  # other tokens of the word may come before its last one
            at = here - 1 if self.token == "first" else before
        else:
            at = after if self.token == "first" else here + 1
        return at.clamp(0, length - 1)


def neighbours(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """B T each: True on the token of each word that its tag is predicted from; the place of that token of the word before, -1 if
    there is none; the same of the word after, T if there is none."""
    words, length = batch.columns[PLACE] >= 0, batch.shape[1]
    here = torch.arange(length, device=words.device).expand(batch.shape)
    before = torch.where(words, here, -1).cummax(1).values
    after = torch.where(words, here, length).flip(1).cummin(1).values.flip(1)
    none = torch.ones_like(before[:, :1])
    return words, torch.cat((-none, before[:, :-1]), 1), torch.cat((after[:, 1:], length * none), 1)


def halves(batch: Batch) -> Tensor:
    """B, the place of the last token in the first half of each row."""
    first = batch.real.int().argmax(1)
    return first + (batch.real.sum(1) - 1).clamp(min=0) // 2
