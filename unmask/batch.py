"""The nouns that travel through the house: Vocabulary, Document, Batch, Targets, Memory, Hidden, Loss.

Shape letters, used everywhere:
    B rows   T tokens in a row   N predictions   E examples (places for them)   S spans
    C characters of a word       L layers        D width                        V vocabulary

Records are frozen: a step that changes something makes a new record with `replace`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # the preparation of text reads this file too, and must not pay for torch
    import numpy as np
    import torch
    from torch import Tensor

    from unmask.text.columns import Column


class Record:
    """What all frozen nouns can do: make a changed copy of themselves, or move to a device."""

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to(self, device: str | torch.device, non_blocking: bool = False) -> Self:
        """The same record with all its tensors on a device, those in dicts and tuples too."""
        moved = {f.name: _moved(getattr(self, f.name), device, non_blocking) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return self.replace(**moved)


def _moved(value: Any, device: str | torch.device, non_blocking: bool) -> Any:
    if hasattr(value, "to"):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, dict):
        return {name: _moved(item, device, non_blocking) for name, item in value.items()}
    return tuple(_moved(item, device, non_blocking) for item in value) if isinstance(value, tuple) else value


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


@dataclass(frozen=True)
class Memory(Record):
    """What a network remembers of the tokens before those of a batch; row b goes on with row b of the batch before."""

    layers: Tensor  # L B M D, what each layer read
    real: Tensor  # B M, False where nothing is remembered yet

    def chosen(self, rows: Tensor) -> Memory:
        """The memory of these rows, in this order."""
        return Memory(self.layers[:, rows], self.real[rows])


@dataclass(frozen=True)
class Hidden(Record):
    """What a backbone computed: the embeddings, then the output of every layer, each B T D."""

    layers: tuple[Tensor, ...]
    query: Tensor | None = None  # N D, the second stream, at the targets alone (XLNet)
    decoded: Tensor | None = None  # B T D, what a decoder made of the last layer (DeBERTa)

    @property
    def last(self) -> Tensor:
        return self.layers[-1]

    @property
    def for_prediction(self) -> Tensor:
        """B T D, what tokens are predicted from: what a decoder made, or the last layer."""
        return self.last if self.decoded is None else self.decoded


@dataclass(frozen=True)
class Loss:
    """A sum and its count, so that a mean is exact under accumulation, packing and data parallelism."""

    total: Tensor
    count: Tensor
    scale: Tensor | None = None  # a learned weight: it multiplies what is minimised, not what is reported
