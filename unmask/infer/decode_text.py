"""Turn generated tokens into text, whole or piece by piece, without incomplete characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tokenizers import decoders

from unmask.text import Tokenizer

_HALF: Final = "\ufffd"  # the decoder writes this for bytes that are not a character


def whole(tokenizer: Tokenizer, before: Sequence[int], ids: Sequence[int]) -> str:
    """The text of the tokens `before`, followed by the text of `ids`.

    A token of a byte-level vocabulary may be a part of a character. An incomplete character in `ids` is left out. The
    text of `before` is not changed."""
    text = tokenizer.decode([*before, *ids])
    if not isinstance(tokenizer.backend.decoder, decoders.ByteLevel):
        return text
    kept = len(tokenizer.decode(before))
    return text[:kept] + text[kept:].replace(_HALF, "")


def pieces(tokenizer: Tokenizer, before: Sequence[int], tokens: Iterable[int]) -> Iterator[str]:
    """The text that each token adds after `before`. A token that ends inside a character is shown with the next token."""
    ids: list[int] = []
    shown = tokenizer.decode(before)
    for token in tokens:
        ids.append(token)
        text = whole(tokenizer, before, ids)
        if len(text) > len(shown):
            yield text[len(shown) :]
            shown = text
