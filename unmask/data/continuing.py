"""Rows that continue where the row before them ended, for networks with a memory (Transformer-XL, XLNet)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unmask.axes import Need, Part
from unmask.data.arrange import Runs
from unmask.data.blocks import FullRows
from unmask.data.concatenation import TEXT, Concatenation
from unmask.data.continuing_reader import ContinuingReader
from unmask.data.cut_rows import PairRows, PlainRows, laid
from unmask.data.row_lengths import RowLengths
from unmask.data.shards import Collection, Shard, Texts
from unmask.errors import require
from unmask.text import Tokenizer


@dataclass(frozen=True)
class ContinuingRows(Part):
    """All documents end to end; every stream reads its own part of them, row after row (Transformer-XL).

    If row lengths are random (AWD-LSTM), the learning rate of a step is in proportion to the length of its rows."""

    deviation: float = 0.0  # standard deviation of the row length, in tokens; it is drawn for each step of training
    half: float = 0.0  # share of the steps whose rows have about half the length

    classes = 0
    answers = ()
    packed = False
    continuous = True

    def __post_init__(self) -> None:
        require(
            self.deviation >= 0, "arrange.deviation must be 0 tokens or more, got {deviation}", deviation=self.deviation
        )
        require(0 <= self.half < 1, "arrange.half must be in [0, 1), got {half}: write 0.05 for 5%", half=self.half)

    @property
    def gives(self) -> frozenset[str]:
        found = {"continuing rows", "unpacked rows"}
        return frozenset(found | ({"random lengths"} if self.deviation or self.half else set()))

    def ready(self, tokenizer: Tokenizer) -> Any:
        return self

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        """The rows of one stream; the last row may be shorter."""
        return FullRows().runs(texts, layout, length, rng)

    def open(
        self,
        collection: Collection,
        tokenizer: Tokenizer,
        layout: str,
        length: int,
        seed: int,
        *,
        shuffled: bool = True,
    ) -> ContinuingReader:
        cutter, drawn = PlainRows.of(layout, length), shuffled and "random lengths" in self.gives
        lengths = RowLengths(length, self.deviation, self.half) if drawn else None
        return ContinuingReader(collection, tokenizer, cutter, layout, length, seed, shuffled=shuffled, lengths=lengths)


@dataclass(frozen=True)
class ContinuingPairs(Part):
    """Rows that begin with text for the memory and end with two texts; the second follows the first or not (XLNet)."""

    reuse: float = 0.5  # share of a row, at its start, that the memory keeps; the next row begins after it
    random: float = 0.5  # share of rows whose second text comes from another place
    both: bool = True  # half of the streams read the text from its end to its beginning

    classes = 0
    answers = ("it follows", "it comes from elsewhere")
    packed = False
    continuous = True

    @property
    def needs(self) -> tuple[Need, ...]:
        because = "its rows overlap, and the memory of a row must not have seen the tokens that the next row predicts"
        return (Need("order|future hidden", because),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"continuing rows", "pairs", "unpacked rows"})

    def __post_init__(self) -> None:
        require(
            0 < self.reuse < 1,
            "arrange.reuse must be in (0, 1), got {reuse}: write 0.5 for half a row",
            reuse=self.reuse,
        )
        require(
            0 <= self.random <= 1,
            "arrange.random must be in [0, 1], got {random}: write 0.5 for half",
            random=self.random,
        )

    def ready(self, tokenizer: Tokenizer) -> Any:
        return self

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        """The rows of one stream that reads forward. A text shorter than a row makes one shorter row."""
        cutter = self._cutter(layout, length)
        shard = Shard(texts.ids, texts.sentence, texts.document, texts.columns)
        line = Concatenation(Collection([shard]), np.arange(len(texts.document) - 1), cutter.before, cutter.after)
        if len(line) < cutter.span:
            cutter = cutter.shortened(len(line))
        begin = np.arange(0, len(line) - cutter.span + 1, cutter.advance)
        parts = cutter.cut(line, begin, lambda _: rng.integers(1 << 63, size=len(begin)))
        pieces, runs = laid(line, parts)
        start = np.where(pieces.role == TEXT, pieces.start, len(texts.ids) + pieces.role)
        return replace(runs, start=start, reuse=cutter.reuse)

    def open(
        self,
        collection: Collection,
        tokenizer: Tokenizer,
        layout: str,
        length: int,
        seed: int,
        *,
        shuffled: bool = True,
    ) -> ContinuingReader:
        cutter = self._cutter(layout, length)
        return ContinuingReader(collection, tokenizer, cutter, layout, length, seed, shuffled=shuffled)

    def _cutter(self, layout: str, length: int) -> PairRows:
        return PairRows.of(self.reuse, self.random, self.both, layout, length)
