"""The nouns that travel through the house: Vocabulary, Document, Batch, Targets, Memory, Hidden, Loss.

Shape letters, used everywhere:
    B rows   T tokens in a row   N predictions   E examples (places for them)   S spans
    C characters of a word       L layers        D width                        V vocabulary

Records are frozen: a step that changes something makes a new record with `replace`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:  # the preparation of text reads this file too, and must not pay for torch
    import numpy as np
    import torch
    from torch import Tensor

    from unmask.text.columns import Column


class Record:
    """What all frozen nouns can do: make a changed copy of themselves, or move to a device."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def to(self, device: str | torch.device, non_blocking: bool = False) -> Self:
        """The record on a device, with all that its fields hold."""
        from unmask import tree  # here, since it imports torch

        moved: Self = tree.mapped(self, lambda tensor: tensor.to(device, non_blocking=non_blocking))
        return moved


@dataclass(frozen=True)
class Vocabulary:
    """What the network must know of a tokenizer: how many tokens there are, and which are special."""

    size: int
    pad: int
    special: tuple[int, ...]  # every id that is never drawn as a replacement
    mask: int | None = None
    unknown: int | None = None  # the token for what is not in the vocabulary


@dataclass(frozen=True)
class Document:
    """One text as tokens, with the boundaries found when it was tokenised; they are never rebuilt later."""

    ids: np.ndarray  # one per token
    sentences: np.ndarray  # index of the first token of each sentence
    columns: dict[str, Column]  # by name: word; phrase and entity where there is a lexicon; an entry per token each


@dataclass(frozen=True)
class Targets(Record):
    """What is predicted and where: a fixed number of places, so that shapes are static."""

    where: Tensor  # N, flat index into B*T: the place of the predicted token
    at: Tensor  # N, flat index of the place whose vector predicts it: the same place, or an earlier one
    ids: Tensor  # N, the token to predict
    start: Tensor  # N, flat index of the first token of the hidden run that it belongs to
    end: Tensor  # N, flat index of the last token of that run
    weight: Tensor  # N, 0.0 on unused places


@dataclass(frozen=True)
class Batch(Record):
    """Rows of tokens. An *example* is the unit of attention; several may share a row, and none sees another."""

    ids: Tensor  # B T
    example: Tensor  # B T, number of the example in its row; -1 on padding
    segment: Tensor  # B T, 0 for the first text of an example, 1 for the second
    position: Tensor  # B T, place in the example
    row: Tensor  # B, the number of the stored row: the address of its randomness
    visit: Tensor  # B, how often that row was seen before
    summary: Tensor  # E, flat index of the token that stands for each example; E K if a task reads each example K times
    label: Tensor  # E, the class of each example
    counted: Tensor  # E, 0.0 on unused places
    # B T each, or with a trailing shape, by name. word, sentence, phrase, entity: the number of the unit in its row; -1
    # outside any unit
    columns: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    # B each, by name. begins: the row begins its part of the text; backward: it holds its text from the end to the start
    per_row: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    tracks: tuple[
        tuple[str, int], ...
    ] = ()  # the tracks that share the batch, in order, and their rows; (): all "main"
    progress: Tensor | None = None  # the share of the training that is done, for curves; None: all of it
    targets: dict[str, Targets] = dataclasses.field(default_factory=dict)  # filled by hide, by name
    rank: Tensor | None = None  # B T, filled by see: a query sees the keys of no greater rank
    original: Tensor | None = None  # B T, filled by a generator: the tokens before it replaced some
    order: Tensor | None = None  # B T, filled by see: a random order of the tokens of each row
    reuse: int | None = None  # how many tokens of a row, its first, go into the memory; None: all
    decoder: Batch | None = None  # the rows that a decoder reads

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def real(self) -> Tensor:
        """B T, True where there is a token and not padding."""
        return self.example >= 0

    @property
    def text(self) -> Tensor:
        """B T, True on the tokens of the text: neither padding nor a special token of the layout."""
        return self.columns["word"] >= 0


# What a network keeps of the tokens that it read: row b of a batch continues row b of the batch before. Any tree of
# tensors, each with its rows first (see tree.py): a Transformer-XL's layers, an LSTM's cells, keys and values.
Memory = Any


@dataclass(frozen=True)
class Hidden(Record):
    """What a backbone computed."""

    layers: tuple[Tensor, ...]  # the embeddings, then the output of every layer, each B T D
    query: Tensor | None = None  # N D, the second stream, only at the targets (XLNet)
    decoded: Tensor | None = None  # B T D, what a decoder made of the layers (DeBERTa)

    @property
    def last(self) -> Tensor:
        """B T D, the output of the last layer."""
        return self.layers[-1]

    @property
    def for_prediction(self) -> Tensor:
        """B T D, what an objective reads if it asks for no layer: the decoder's vectors, or those of the last layer."""
        return self.last if self.decoded is None else self.decoded


@dataclass(frozen=True)
class Loss:
    """A sum and its count, so that a mean is exact under accumulation, packing and data parallelism."""

    total: Tensor
    count: Tensor
    scale: Tensor | None = None  # a learned weight: it multiplies what is minimised, not what is reported
