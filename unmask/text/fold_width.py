"""Folding: replace full-width letters, digits, punctuation and spaces (U+FF01 to U+FF5E, U+3000) by half-width ones.

Folding is the first step of a tokenizer's normaliser, so a tokenizer that folds does so wherever it is used.
"""

from __future__ import annotations

from typing import Any

from tokenizers import normalizers

FULL = [chr(code) for code in range(0xFF01, 0xFF5F)] + ["\u3000"]
HALF = [chr(code) for code in range(0x21, 0x7F)] + [" "]
_TABLE = str.maketrans(dict(zip(FULL, HALF, strict=True)))


def folded(text: str) -> str:
    """The text with half-width characters. Every character keeps its position."""
    return text.translate(_TABLE)


def folding(normalizer: Any) -> Any:
    """A normalizer that folds and then applies this one; None: it only folds."""
    steps = [normalizers.Replace(full, half) for full, half in zip(FULL, HALF, strict=True)]
    return normalizers.Sequence(steps if normalizer is None else [*steps, normalizer])


def folds(normalizer: dict[str, Any] | None) -> bool:
    """Whether a normalizer, given as in tokenizer.json, begins with folding."""
    steps = (normalizer or {}).get("normalizers", [])[: len(FULL)]
    wanted = zip(FULL, HALF, strict=True)
    return [(step.get("pattern"), step.get("content")) for step in steps] == [({"String": f}, h) for f, h in wanted]
