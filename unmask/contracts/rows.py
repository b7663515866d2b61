"""Rows: make changed batches, and read targets, for the contracts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from unmask.axes import COLUMN_OF_TARGETS
from unmask.batch import Batch, Targets
from unmask.system.tracks import joined, rows_of
from unmask.text.word_tokens import NO_BYTE, SPELLING


def some_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """These rows, in this order, of a batch in which no token is hidden. All rows get its first track."""
    tracks = tuple((name, len(rows)) for name, _ in batch.tracks[:1])
    return joined([rows_of(batch, row, row + 1) for row in rows]).replace(tracks=tracks)


def with_other_token(batch: Batch, place: int, size: int) -> Batch:
    """The batch with a different token at one place of every row."""
    ids = batch.ids.clone()
    ids[:, place] = (ids[:, place] + 7) % size
    return respelled(batch.replace(ids=ids), slice(None), place)


def respelled(batch: Batch, row: Any, place: Any) -> Batch:
    """The batch with another spelling at a place, if it has spellings: a network may read them instead of the ids."""
    if SPELLING not in batch.columns:
        return batch
    spelling = batch.columns[SPELLING].clone()
    spelling[row, place, 0] = (spelling[row, place, 0] + 1) % NO_BYTE
    return batch.replace(columns=batch.columns | {SPELLING: spelling})


def cut(batch: Batch, examples: int = 3) -> Batch:
    """The same rows, each cut into several examples. No `arrange` makes such rows, but every network must accept them."""
    place = torch.arange(batch.shape[1], device=batch.ids.device).expand(batch.shape)
    size = -(-batch.shape[1] // examples)
    return batch.replace(
        example=torch.where(batch.real, place // size, -1), position=place % size, segment=torch.zeros_like(place)
    )


def predicting(batch: Batch) -> Batch:
    """The rows at which targets are predicted: those of the decoder, or the batch itself."""
    return batch.decoder or batch


def with_targets(batch: Batch, name: str, targets: Targets) -> Batch:
    """The batch with other targets of this name."""
    read = predicting(batch)
    changed = read.replace(targets=read.targets | {name: targets})
    return changed if batch.decoder is None else batch.replace(decoder=changed)


def marked(batch: Batch, where: Tensor) -> Tensor:
    """B T, True at these flat indices."""
    found = torch.zeros(batch.ids.numel(), dtype=torch.bool, device=batch.ids.device)
    return found.index_fill(0, where, True).view(batch.shape)


def predicted(batch: Batch) -> Tensor:
    """B T, True on the tokens that are targets of any name, and predicted as tokens."""
    found = torch.zeros_like(batch.real)
    for targets in (targets for name, targets in batch.targets.items() if name not in COLUMN_OF_TARGETS):
        found = found | marked(batch, used(targets, "where"))
    return found


def used(targets: Targets, name: str) -> Tensor:
    """One field of the targets, without unused places."""
    found: Tensor = getattr(targets, name)[targets.weight > 0]
    return found


def by_row(targets: Targets, batch: Batch, text: int) -> dict[str, Tensor]:
    """Every field of the targets as B N. Flat indices become indices into the row. `text`: the length of the rows before any
    rule changed them."""
    rows, length = batch.shape
    row = torch.arange(rows, device=batch.ids.device)[:, None]
    widths = {"where": text, "start": text, "end": text, "at": length}
    fields = {name: value.view(rows, -1) for name, value in vars(targets).items()}
    return {name: value - row * widths.get(name, 0) for name, value in fields.items()}


class InTurn:
    """A source that always gives the same batches, one after another."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = cycle(batches)

    def batch(self, rows: int) -> Batch:
        return next(self.batches)

    def state(self) -> dict[str, Any]:
        return {}

    def after_stage(self) -> dict[str, Any]:
        return {}
