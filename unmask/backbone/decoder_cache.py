"""The cache of a decoder: keys and values of the tokens that it has written, and of the source, which never change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unmask.backbone.cross_attention import CrossMask, KeysValues
from unmask.backbone.key_value_cache import Cache
from unmask.batch import Record


@dataclass(frozen=True)
class DecoderCache(Record):
    """With it, a decoder reads one more token of every row without reading the source or its own tokens again."""

    per_source: ClassVar = ("keys", "values", "real")  # several rows of `own` may be written from one source

    own: Cache  # of the decoder's tokens
    keys: Tensor  # B L H S d, of the source
    values: Tensor  # B L H S d
    real: Tensor  # B S, True on the tokens of the source, False on padding

    def source(self, layer: int) -> KeysValues:
        """The keys and values of the source in a layer, counted from 0; each B H S d."""
        return self.keys[:, layer], self.values[:, layer]

    @property
    def mask(self) -> CrossMask:
        """All texts of a source see the same tokens of it."""
        return CrossMask(mask=self.real[:, None, None])
