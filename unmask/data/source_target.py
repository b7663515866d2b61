"""SourceTarget: pairs of a source and a target, such as a sentence and its translation, as the data gives them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unmask.axes import Need
from unmask.data.arrange import Runs, render
from unmask.data.group_reader import Shuffled
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import layout as layouts
from unmask.text.encode import SIDE

CUT = "pairs with a source or target of more than {} tokens, of which the end is cut"
ONE_SIDED = "pairs without a source or without a target, skipped"


@dataclass(frozen=True)
class SourceTarget(Shuffled):
    """Each document is a pair of a source and a target (Transformer).

    In a row of L tokens, all sources have at most L/2 tokens, and so have all targets. A rule can then put each side into rows
    of half the length."""

    alone: bool = False  # one pair in each row: for networks that cannot begin again inside a row

    classes = 0
    answers = ()

    @property
    def packed(self) -> bool:
        """Whether several pairs may share a row."""
        return not self.alone

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need(f"column:{SIDE}", "it reads pairs of a source and a target"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"pairs", "halves"} | ({"unpacked rows"} if self.alone else set()))

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        items = layouts.items(layout, 2)
        around = [sum(not item.is_text and item.segment == side for item in items) for side in (0, 1)]
        room = [length // 2 - tokens for tokens in around]
        require(
            min(room) >= 1,
            "rows of {length} tokens leave no room for a source and a target in {layout!r}: use 8 or more",
            length=length,
            layout=layout,
        )
        notes: Counter[str] = Counter()
        spans = _spans(texts, notes)
        require(
            len(spans["a"]) > 0, "no document is a pair of a source and a target: prepare JSON lines that have both"
        )
        cut = np.zeros(len(spans["a"]), bool)
        for span, most in zip(spans.values(), room, strict=True):
            cut |= span[:, 1] - span[:, 0] > most
            span[:, 1] = np.minimum(span[:, 1], span[:, 0] + most)
        if cut.any():
            notes[CUT.format(min(room))] = int(cut.sum())
        sizes = [span[:, 1] - span[:, 0] + tokens for span, tokens in zip(spans.values(), around, strict=True)]
        found = render(spans, np.zeros(len(cut), np.int64), layout, len(texts.ids), notes)
        return replace(found, space=2 * np.maximum(*sizes))


def _spans(texts: Texts, notes: Counter[str]) -> dict[str, np.ndarray]:
    """The first token and the end of the source, and of the target, of every document."""
    edges = texts.sentence[texts.document]
    targets = np.concatenate(([0], np.cumsum(texts.columns[SIDE].values == 1)))
    middle = edges[1:] - np.diff(targets[edges])  # a document is its source, then its target
    both = (middle > edges[:-1]) & (middle < edges[1:])
    if not both.all():
        notes[ONE_SIDED] = int((~both).sum())
    return {
        "a": np.stack((edges[:-1], middle), 1)[both].astype(np.int64),
        "b": np.stack((middle, edges[1:]), 1)[both].astype(np.int64),
    }
