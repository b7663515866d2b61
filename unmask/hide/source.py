"""Source: where each token of a row came from, for rules that move, remove or insert tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.batch import Batch, Record

NEW = -1  # the token came from no place
EMPTY = -1  # the place is padding


@dataclass(frozen=True)
class Source(Record):
    """For every place of a changed row: which token stands there, and whose example, segment and columns it has. The changed
    row may be shorter."""

    place: Tensor  # B T, the place that the token came from; NEW: it was not in the row
    like: Tensor  # B T, the place whose example, segment and columns it has; EMPTY: the place is padding


def same(place: Tensor) -> Source:
    """The source of rows in which no token is new or removed."""
    return Source(place, place)


def compact(keep: Tensor, insert: Tensor, new: Tensor) -> Source:
    """The source of rows without the tokens that are not in `keep`, moved to the left. The row length stays the same.

    `insert`: a new token is inserted before each of these. `new`: these tokens are kept, but replaced by new ones."""
    rows, length = keep.shape
    here = torch.arange(length, device=keep.device).expand(keep.shape)
    width = keep.long() + insert.long()
    first = width.cumsum(1) - width  # B T, where the tokens of this place begin
    empty = torch.full((rows, length + 1), EMPTY, device=keep.device)  # the last place is for what is not kept
    at = torch.where(keep, first + insert, length)
    like = empty.scatter(1, at, here).scatter(1, torch.where(insert, first, length), here)
    place = empty.scatter(1, at, torch.where(new, NEW, here))
    return Source(place[:, :-1], like[:, :-1])


def moved(batch: Batch, ids: Tensor, source: Source | None, pad: int) -> Batch:
    """The batch with new ids, and with all fields and columns moved with their tokens. Positions count from the first token
    of each example. None: no token moved."""
    if source is None:
        return batch.replace(ids=ids)
    row = torch.arange(len(ids), device=ids.device)[:, None]
    empty, like = source.like == EMPTY, source.like.clamp(min=0)
    example = torch.where(empty, -1, batch.example.gather(1, like))
    position = _positions(example)
    columns = {name: column[row, like] for name, column in batch.columns.items()}
    units = {name: torch.where(empty, -1, column) for name, column in columns.items() if column.dim() == 2}
    return batch.replace(
        ids=torch.where(empty, pad, ids),
        example=example,
        segment=torch.where(empty, 0, batch.segment.gather(1, like)),
        position=torch.where(empty, 0, position),
        columns=columns | units,
        summary=_summaries(batch, source),
    )


def _positions(example: Tensor) -> Tensor:
    """B T, the position of each token in its example."""
    here = torch.arange(example.shape[1], device=example.device).expand(example.shape)
    begins = torch.ones_like(example, dtype=torch.bool)
    begins[:, 1:] = example[:, 1:] != example[:, :-1]
    return here - torch.where(begins, here, 0).cummax(1).values


def _summaries(batch: Batch, source: Source) -> Tensor:
    """The flat index of each summary token after the move; if the token was removed, the first of its row."""
    (rows, length), width = batch.shape, source.place.shape[1]
    here = torch.arange(width, device=source.place.device).expand(source.place.shape)
    at = torch.where(source.place >= 0, source.place, length)
    now = torch.zeros(rows, length + 1, dtype=torch.long, device=at.device).scatter(1, at, here)[:, :-1]
    row, place = batch.summary // length, batch.summary % length
    return row * width + now[row, place]
