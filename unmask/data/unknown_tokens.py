"""What the tokenizer does not know of a corpus: how many tokens, and the characters behind them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from unmask.text import Tokenizer

NOTED = 0.01  # share of tokens from which on something is probably wrong
_SHOWN = 10  # of the characters behind unknown tokens
_MOST = 100_000  # different texts that are remembered


class Unknown:
    """Counts the texts that became unknown tokens, as long as they are not too many, and how often they did."""

    def __init__(self) -> None:
        self.tokens = 0
        self.texts: Counter[str] = Counter()

    def add(self, texts: Counter[str]) -> None:
        self.tokens += texts.total()
        self.texts += texts
        if len(self.texts) > 2 * _MOST:
            self.texts = Counter(dict(self.texts.most_common(_MOST)))

    def record(self, tokenizer: Tokenizer, tokens: int) -> dict[str, Any]:
        """How many of these tokens are unknown, their share, and how often what is behind most of them comes."""
        behind = self._characters(tokenizer).most_common(_SHOWN)
        share = self.tokens / max(tokens, 1)
        return {"tokens": self.tokens, "share": round(share, 6), "most": {text[:20]: times for text, times in behind}}

    def _characters(self, tokenizer: Tokenizer) -> Counter[str]:
        """The characters that no token has; a text that has none of them counts itself."""
        alphabet = set("".join(tokenizer.backend.get_vocab()))
        normalizer = tokenizer.backend.normalizer
        found: Counter[str] = Counter()
        for text, times in self.texts.items():
            read = normalizer.normalize_str(text) if normalizer is not None else text
            for part in {character for character in read if not character.isspace()} - alphabet or {text}:
                found[part] += times
        return found


def note_of(unknown: dict[str, Any]) -> str:
    """The note on unknown tokens, where there are too many of them."""
    most = ", ".join(f"{text} ({times:,})" for text, times in unknown["most"].items())
    return (
        f"tokens, {100 * unknown['share']:.1f}% of all, are unknown to the tokenizer: the model learns nothing about them. "
        f"Most often: {most}. Train a tokenizer on this text, or take one that knows these characters"
    )
