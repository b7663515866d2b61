"""The mask of each layer of a Transformer: some layers see only a window, and queries and keys may be rotated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from unmask.backbone.attention import AttentionMask, within
from unmask.batch import Batch

if TYPE_CHECKING:
    from unmask.backbone.transformer import Transformer


def layer_masks(spec: Transformer, batch: Batch, mask: AttentionMask, key: Tensor) -> list[AttentionMask]:
    """One mask per layer, made from the mask without a window. Layers with the same window share a mask.

    `key`: the position of every key, B K."""
    windows = [spec.window(number) for number in range(spec.layers)]
    made = {window: _layer_mask(spec, batch, mask, key, window) for window in dict.fromkeys(windows)}
    return [made[window] for window in windows]


def _layer_mask(spec: Transformer, batch: Batch, mask: AttentionMask, key: Tensor, window: int | None) -> AttentionMask:
    mask = mask if window is None else within(mask, batch, window, key)
    rotation = spec.positions.rotation(batch.position, spec.width // spec.heads, local=window is not None)
    return mask if rotation is None else replace(mask, rotation=rotation)
