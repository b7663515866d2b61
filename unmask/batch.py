"""The records that all parts exchange: Vocabulary, Document, Batch, Targets, Memory, Hidden, Loss.

Shape letters, used everywhere:
    B rows   T tokens in a row   N predictions   E examples (places for them)   S spans
    C characters of a word       L layers        D width                        V vocabulary

Records are frozen: a step that changes something makes a new record with `replace`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:  # the preparation of text imports this file too, and must not wait for torch
    import numpy as np
    import torch
    from torch import Tensor

    from unmask.text.columns import Column


TASK = "task"  # in `Batch.per_row`: the number of the track, for a network with task embeddings


class Record:
    """Base class of frozen records: a record can be copied with changes, and moved to a device."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def to(self, device: str | torch.device, non_blocking: bool = False) -> Self:
        """A copy of the record with all its tensors on a device. `non_blocking`: do not wait for the work of a GPU."""
        from unmask import tree  # imported here because it imports torch

        pinned = non_blocking and str(device).startswith("cuda")  # other memory is copied when all earlier work is done

        def move(tensor: Tensor) -> Tensor:
            ready = tensor.pin_memory() if pinned and not tensor.is_cuda else tensor
            return ready.to(device, non_blocking=non_blocking)

        moved: Self = tree.mapped(self, move)
        return moved


@dataclass(frozen=True)
class Vocabulary:
    """What a network must know about a tokenizer: the number of tokens, and the special ones."""

    size: int
    pad: int
    special: tuple[int, ...]  # the special ids: they are never drawn as random tokens
    mask: int | None = None
    unknown: int | None = None  # [UNK]: the token for text that the vocabulary cannot express
    end: int | None = None  # the token that ends a text: a decoder begins with it, and writes it last


@dataclass(frozen=True)
class Document:
    """One text as tokens. Its boundaries are found when it is tokenised, and never computed again."""

    ids: np.ndarray  # token ids
    sentences: np.ndarray  # index of the first token of each sentence
    columns: dict[str, Column]  # by name, one value per token: word; phrase and entity if there is a lexicon


@dataclass(frozen=True)
class Targets(Record):
    """The tokens to predict and their positions. The number of places is fixed, so that shapes are static."""

    where: Tensor  # N, flat index into B*T of the predicted token
    at: Tensor  # N, flat index of the vector that predicts it: the same index, or an earlier one
    ids: Tensor  # N, the token to predict
    start: Tensor  # N, flat index of the first token of its hidden unit
    end: Tensor  # N, flat index of the last token of its hidden unit
    weight: Tensor  # N, 0.0 at unused places


@dataclass(frozen=True)
class Batch(Record):
    """Rows of tokens. An *example* is the unit of attention: several may share a row, but none sees another."""

    ids: Tensor  # B T
    example: Tensor  # B T, number of the example in its row; -1 on padding
    segment: Tensor  # B T, 0 for the first text of an example, 1 for the second
    position: Tensor  # B T, position in the example
    row: Tensor  # B, the number of the stored row: random draws depend on it
    visit: Tensor  # B, how often that row was read before
    summary: Tensor  # E, flat index of the token that represents each example; E K if a task reads an example K times
    label: Tensor  # E, the class of each example
    counted: Tensor  # E, 0.0 at unused places
    # by name, B T each, or with a trailing shape. word, sentence, phrase, entity: the number of the unit within its row;
    # -1: the token is in no such unit
    columns: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    # by name, B each. begins: the row does not continue the row before; backward: it holds its text in reverse order; task:
    # the number of its track, filled by the system for a network with task embeddings
    per_row: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    # by name, E each, or with a trailing shape: the answers of a task that are not one class, such as a number
    per_example: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    tracks: tuple[
        tuple[str, int], ...
    ] = ()  # the tracks that share the batch, in order, with their numbers of rows; (): all rows are "main"
    pace: float = (
        1.0  # the length of its rows, as a share of the usual length; the learning rate is in proportion to it
    )
    progress: Tensor | None = None  # the share of training that is done, for curves; None: training is finished
    targets: dict[str, Targets] = dataclasses.field(default_factory=dict)  # by name, filled by `hide`
    rank: Tensor | None = None  # B T, filled by `see`: a query sees the keys whose rank is not larger than its own
    original: Tensor | None = None  # B T, filled by a generator: the ids before it replaced some
    order: Tensor | None = None  # B T, filled by `see`: a random order of the tokens of each row
    reuse: int | None = None  # only the first `reuse` tokens of a row go into the memory; None: all tokens
    # the largest number of tokens of the first text in a row, and of the second; None: not known
    sides: tuple[int, int] | None = None
    # the rows that a decoder reads, with targets and rank filled in; `where` of their targets is a place of the text before
    # any rule changed it
    decoder: Batch | None = None
    # the same texts, each in a row of its own, for heads that read whole rows (`apart`); None: such heads read these rows
    apart: Apart | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def real(self) -> Tensor:
        """B T, True on tokens, False on padding."""
        return self.example >= 0

    @property
    def text(self) -> Tensor:
        """B T, True on the tokens of the text: neither padding nor a special token of the layout."""
        return self.columns["word"] >= 0


@dataclass(frozen=True)
class Apart(Record):
    """The texts of packed rows, each in a row of its own, and where their tokens are in the packed rows."""

    rows: Batch
    place: Tensor  # B T of `rows`, flat index into the packed rows; any on padding


# What a network remembers of earlier tokens: row b of a batch continues row b of the batch before. Any tree of tensors
# (see tree.py) whose first dimension is the row: a Transformer-XL's layers, an LSTM's cells, keys and values.
Memory = Any


@dataclass(frozen=True)
class Hidden(Record):
    """The vectors that a backbone computed."""

    layers: tuple[Tensor, ...]  # the embeddings, then the output of every layer, each B T D
    query: Tensor | None = None  # N D, the second stream, only at the targets (XLNet)
    # B T D, what a decoder made of the layers: at the tokens themselves (DeBERTa), or at those of the decoder rows (BART)
    decoded: Tensor | None = None
    # B T D, the entity at each token after the last layer; 0: there is none (ERNIE of Tsinghua)
    entities: Tensor | None = None
    table: Tensor | None = None  # E D, the vectors of all entities, which are not trained

    @property
    def last(self) -> Tensor:
        """B T D, the output of the last layer."""
        return self.layers[-1]

    def apart(self, batch: Batch) -> tuple[Hidden, Batch]:
        """The vectors of the last layer and the rows for heads that read whole rows: each text has a row, also if the network
        read several in a row."""
        if batch.apart is None:
            return self, batch
        place = batch.apart.place

        def spread(vectors: Tensor | None) -> Tensor | None:
            return (
                None
                if vectors is None
                else vectors.flatten(0, 1).index_select(0, place.flatten()).unflatten(0, place.shape)
            )

        last = spread(self.last)
        assert last is not None
        return Hidden((last,), entities=spread(self.entities), table=self.table), batch.apart.rows

    @property
    def for_prediction(self) -> Tensor:
        """B T D, what an objective reads by default: the decoder's vectors, or those of the last layer."""
        return self.last if self.decoded is None else self.decoded


@dataclass(frozen=True)
class Loss:
    """A sum and its count: with both, the mean is exact under accumulation, packing and data parallelism."""

    total: Tensor
    count: Tensor
    scale: Tensor | None = None  # a learned weight: it multiplies the loss that is minimised, not the reported one
    positive: Tensor | None = None  # for a yes/no objective: how many of the right answers are yes
