"""Arrange: the result of an arrangement, which turns documents into examples. An example is a list of runs of tokens.

`Runs` copies no token. It says where each run begins in the texts, how long it is, and which example it belongs to. A
special token is a run of length one; its start is an index after the end of the texts. The arrangements are in
`blocks.py`, `pairs.py` and `continuing.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.text.columns import Column

TRACK = "TRACK"  # in advice: an arrangement does not know the name of its track; who knows it fills it in
ROLES = tuple(layouts.SPECIALS.values())  # the special tokens that come after the texts, in this order


def special_ids(tokenizer: Tokenizer, layout: str) -> list[int]:
    """The ids of ROLES. The tokenizer must have the roles that the layout names; the other ids are never used."""
    for item in layouts.items(layout, 2 if "b" in layout.split() else 1):
        if not item.is_text:
            tokenizer.role(item.name)
    return [tokenizer.roles.get(role, tokenizer.vocabulary.pad) for role in ROLES]


@dataclass(frozen=True)
class Runs:
    """Examples as runs of tokens, sorted by example and place."""

    start: np.ndarray  # first token; len(texts) + i is the i-th of ROLES
    length: np.ndarray
    segment: np.ndarray
    example: np.ndarray
    summary: np.ndarray  # per example: the run that holds its summary token (its last token)
    label: np.ndarray  # per example
    notes: Counter[str] = field(default_factory=Counter)
    reuse: int | None = None  # number of tokens at the start of a row that a memory keeps; None: all
    columns: dict[str, Column] = field(default_factory=dict)  # more columns of the texts, by name
    space: np.ndarray | None = None  # per example: the number of tokens of a row that it takes up; None: its own tokens


def render(spans: dict[str, np.ndarray], label: np.ndarray, layout: str, end: int, notes: Counter[str]) -> Runs:
    """Examples of one or two spans each, with the special tokens of the layout."""
    items = layouts.items(layout, len(spans))
    n, k = len(label), len(items)
    start, length = np.empty((n, k), np.int64), np.ones((n, k), np.int64)
    for i, item in enumerate(items):
        if item.is_text:
            start[:, i], length[:, i] = spans[item.name][:, 0], spans[item.name][:, 1] - spans[item.name][:, 0]
        else:
            start[:, i] = end + ROLES.index(item.name)
    return Runs(
        start.ravel(), length.ravel(), np.tile([item.segment for item in items], n), np.repeat(np.arange(n), k),
        np.arange(n) * k + layouts.summary(layout, len(spans)), label, notes,
    )  # fmt: skip
