"""Automatic dropout: none for text that is read once or twice, because then nothing is learned by heart."""

from __future__ import annotations

from typing import Literal

Dropout = (
    float | Literal["auto"]
)  # "auto": pretraining chooses it by how often the text is read, and writes down its choice

OFTEN = 3  # text that is read at least this many times needs dropout
USUAL = 0.1  # the dropout of most papers


def dropout_for(dropout: Dropout, visits: float = OFTEN) -> float:
    """The dropout of a network that reads its text this many times. "auto" has no effect on a number that was given."""
    if dropout != "auto":
        return dropout
    return 0.0 if visits < OFTEN else USUAL
