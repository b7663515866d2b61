"""Data prepared in format 1: its manifest has no list of columns, and the file of words holds flags instead of marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.text.columns import Column, run_column


def columns_of_format_1(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the manifest would say about its columns: words, and those of a lexicon where there was one."""
    names = ("word", "phrase", "entity") if manifest.get("lexicon") else ("word",)
    return {name: {"kind": "run", "dtype": "uint8", "shape": [], "fill": -1} for name in names}


@dataclass(frozen=True)
class FlaggedWords(Column):
    """The column of words: 1 where a word begins, 0 where it continues. What is taken of it has marks."""

    def __getitem__(self, index: Any) -> Column:
        return run_column(self.values[index] != 0)
