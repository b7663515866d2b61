"""Marks: characters of a text that have a value, such as the tag of a word. They become a column of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unmask.text.columns import Column

UNMARKED = -1  # in a column: the value of a token without a mark


@dataclass(frozen=True)
class Mark:
    """Some characters of a text, and the value of their tokens."""

    start: int  # the first character
    end: int  # the character after the last
    value: int  # 0 or more


@dataclass(frozen=True)
class Marks:
    """The marks of all examples that become one column."""

    name: str  # of the column
    marks: Sequence[Sequence[Mark]]  # per example; in each example in the order of the text
    on: Literal["first", "last", "all"] = "first"  # which tokens of a mark get its value
    text: Literal["a", "b"] = "a"  # the text that has the marks


def column_of(places: np.ndarray, marks: Sequence[Mark], on: Literal["first", "last", "all"]) -> Column:
    """The column of one text. `places`: T 2, where each token begins and ends (see `unmask.text.encode`).

    A token gets the value of the first mark that it belongs to. A mark may get no token: its characters have none, or its
    token belongs to an earlier mark."""
    values = np.full(len(places), UNMARKED, np.int64)
    if len(places) and len(marks):
        begins, ends = (np.maximum.accumulate(places[:, side]) for side in (0, 1))
        first = np.searchsorted(ends, [mark.start for mark in marks], side="right")
        after = np.searchsorted(begins, [mark.end for mark in marks], side="left")
        for mark, low, high in zip(marks, first.tolist(), after.tolist(), strict=True):
            chosen = {"first": slice(low, min(low + 1, high)), "last": slice(max(low, high - 1), high)}
            part = values[chosen.get(on, slice(low, high))]
            part[part == UNMARKED] = mark.value
    return Column(values, "value", UNMARKED)
