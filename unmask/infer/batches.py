"""Make batches for generation: from whole texts, or from the one token that each text got last."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unmask.batch import Batch


def left_padded(texts: Sequence[Sequence[int]], pad: int, multiple: int = 1) -> Batch:
    """One text per row. Short texts are padded on the left, so that all rows continue at the same column. The width of the
    batch is a multiple of `multiple`."""
    width = -(-max(map(len, texts)) // multiple) * multiple
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.tensor([[pad] * (width - len(text)) + list(text) for text in texts])
    return _batch(ids, torch.arange(width) >= width - lengths[:, None])


def one_more(last: Tensor) -> Batch:
    """A batch of one token per row: the last one that was written. `last`: B."""
    ids = last[:, None]
    return _batch(ids, torch.ones_like(ids, dtype=torch.bool))


def with_gap(batch: Batch, mask: int) -> Batch:
    """The batch with a [MASK] of the second text at the end of each row. A memory does not keep it."""
    last = batch.ids[:, :1]
    ids = torch.cat((batch.ids, torch.full_like(last, mask)), 1)
    real = torch.cat((batch.real, torch.ones_like(last, dtype=torch.bool)), 1)
    segment = torch.cat((batch.segment, torch.ones_like(last)), 1)
    return _batch(ids, real).replace(segment=segment, reuse=batch.shape[1])


def _batch(ids: Tensor, real: Tensor) -> Batch:
    rows, length = ids.shape
    place, only = real.cumsum(1) - 1, real.long() - 1  # `place` is 0, 1, 2 ...; `only` is 0; both are -1 on padding
    row = torch.arange(rows, device=ids.device)
    zeros = torch.zeros_like(row)
    return Batch(
        ids=ids, columns={"word": place, "sentence": only}, example=only, segment=torch.zeros_like(ids), position=place.clamp(min=0),
        row=row, visit=zeros, summary=row * length + length - 1, label=zeros,
        counted=torch.ones(rows, device=ids.device),
    )  # fmt: skip
