"""Full-width forms as half-width ones: letters, digits, punctuation and the space (U+FF01 to U+FF5E, U+3000).

A tokenizer that folds does so wherever it is used, since folding is the first step of its own normalisation.
"""

from __future__ import annotations

from typing import Any

from tokenizers import normalizers

FULL = [chr(code) for code in range(0xFF01, 0xFF5F)] + ["\u3000"]
HALF = [chr(code) for code in range(0x21, 0x7F)] + [" "]
_TABLE = str.maketrans(dict(zip(FULL, HALF, strict=True)))


def folded(text: str) -> str:
    """The text with half-width forms; no character moves."""
    return text.translate(_TABLE)


def folding(normalizer: Any) -> Any:
    """A normalizer that folds first and then does what this one does; none: nothing more."""
    steps = [normalizers.Replace(full, half) for full, half in zip(FULL, HALF, strict=True)]
    return normalizers.Sequence(steps if normalizer is None else [*steps, normalizer])


def folds(normalizer: dict[str, Any] | None) -> bool:
    """Whether a normalizer, as it stands in a tokenizer.json, begins by folding."""
    steps = (normalizer or {}).get("normalizers", [])[: len(FULL)]
    wanted = zip(FULL, HALF, strict=True)
    return [(step.get("pattern"), step.get("content")) for step in steps] == [({"String": f}, h) for f, h in wanted]
