"""Pieces: tokens as text, as they come, and never half a character."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tokenizers import decoders

from unmask.text import Tokenizer

_HALF: Final = "\ufffd"  # what the decoder writes for bytes that are no character


def whole(tokenizer: Tokenizer, before: Sequence[int], ids: Sequence[int]) -> str:
    """The text that stands before and the text of these tokens after it.

    Tokens of a byte-level vocabulary may be parts of a character. A character whose bytes are not all there, at the end or
    because the model left it, is not shown; what stands before stays as it is."""
    text = tokenizer.decode([*before, *ids])
    if not isinstance(tokenizer.backend.decoder, decoders.ByteLevel):
        return text
    kept = len(tokenizer.decode(before))
    return text[:kept] + text[kept:].replace(_HALF, "")


def pieces(tokenizer: Tokenizer, before: Sequence[int], tokens: Iterable[int]) -> Iterator[str]:
    """What each token adds to the text that stands before; a token that ends within a character waits for the next."""
    ids: list[int] = []
    shown = tokenizer.decode(before)
    for token in tokens:
        ids.append(token)
        text = whole(tokenizer, before, ids)
        if len(text) > len(shown):
            yield text[len(shown) :]
            shown = text
