"""Unknown tokens of a corpus: how many there are, and which characters or words cause them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from unmask.text import Tokenizer

NOTED = 0.01  # share of tokens; above it, something is probably wrong
_SHOWN = 10  # number of characters that are shown
_MOST = 100_000  # number of different texts that are kept


class Unknown:
    """Counts the texts that became unknown tokens. If there are too many different texts, the rarest are dropped."""

    def __init__(self) -> None:
        self.tokens = 0
        self.texts: Counter[str] = Counter()

    def add(self, texts: Counter[str]) -> None:
        self.tokens += texts.total()
        self.texts += texts
        if len(self.texts) > 2 * _MOST:
            self.texts = Counter(dict(self.texts.most_common(_MOST)))

    def record(self, tokenizer: Tokenizer, tokens: int) -> dict[str, Any]:
        """The number of unknown tokens, their share of all `tokens`, and the most frequent texts that cause them: words, or
        characters if the tokenizer has pieces of words."""
        causes = (self._characters(tokenizer) if tokenizer.has_pieces else self.texts).most_common(_SHOWN)
        share = self.tokens / max(tokens, 1)
        return {"tokens": self.tokens, "share": round(share, 6), "most": {text[:20]: times for text, times in causes}}

    def _characters(self, tokenizer: Tokenizer) -> Counter[str]:
        """Counts of the characters that are in no token; a text without such characters is counted as a whole."""
        alphabet = set("".join(tokenizer.backend.get_vocab()))
        normalizer = tokenizer.backend.normalizer
        found: Counter[str] = Counter()
        for text, times in self.texts.items():
            read = normalizer.normalize_str(text) if normalizer is not None else text
            for part in {character for character in read if not character.isspace()} - alphabet or {text}:
                found[part] += times
        return found


def note_of(unknown: dict[str, Any], tokenizer: Tokenizer) -> str:
    """The note for the user if there are too many unknown tokens."""
    most = ", ".join(f"{text} ({times:,})" for text, times in unknown["most"].items())
    effect = (
        "reads their spelling, but never predicts them" if tokenizer.keeps_spelling else "learns nothing about them"
    )
    advice = (
        "Train a tokenizer on this text, or use one that knows these characters"
        if tokenizer.has_pieces
        else "A larger vocabulary (tokenizer.vocab), made from this text, has more of them"
    )
    share = f"{100 * unknown['share']:.1f}%"
    return f"tokens, {share} of all, are unknown to the tokenizer: the model {effect}. Most often: {most}. {advice}"
