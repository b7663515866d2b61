"""Pieces: tokens as text, as they come, and never half a character."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from unmask.text import Tokenizer


def whole(text: str) -> str:
    """The text without a character at its end whose bytes are not all there."""
    return text.rstrip("\ufffd")


def pieces(tokenizer: Tokenizer, before: Sequence[int], tokens: Iterable[int]) -> Iterator[str]:
    """What each token adds to the text that stands before; a token that ends within a character waits for the next."""
    ids, shown = list(before), whole(tokenizer.decode(before))
    for token in tokens:
        ids.append(token)
        text = whole(tokenizer.decode(ids))
        if len(text) > len(shown):
            yield text[len(shown) :]
            shown = text
