"""Data prepared in format 1: its manifest has no list of columns, and the file of words holds flags instead of marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.text.columns import Column, run_column


def columns_of_format_1(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The descriptions of columns that the manifest lacks: words, and the columns of a lexicon if there was one."""
    names = ("word", "phrase", "entity") if manifest.get("lexicon") else ("word",)
    return {name: {"kind": "run", "dtype": "uint8", "shape": [], "fill": -1} for name in names}


@dataclass(frozen=True)
class FlaggedWords(Column):
    """The column of words: 1 where a word begins, 0 where it continues. Its entries are converted to marks when read."""

    def __getitem__(self, index: Any) -> Column:
        return run_column(self.values[index] != 0)
