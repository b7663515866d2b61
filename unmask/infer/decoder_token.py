"""Compute the scores of the next token that a decoder writes from a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unmask.axes import gives_of
from unmask.errors import require
from unmask.infer.batches import left_padded, one_more
from unmask.infer.cuda_graph import records
from unmask.infer.model import Model
from unmask.infer.next_token import ROOM, Windows, last_scores, never
from unmask.text import layout as layouts


@dataclass(frozen=True)
class DecoderToken:
    """Reads sources once with the encoder, and scores the next token of the decoder. It has the members of `NextToken`."""

    model: Model
    second: bool = True  # a text is written from a source; no text is continued

    def __post_init__(self) -> None:
        self.model.head("token scores", "generate text")
        self.model.system.eval()

    @cached_property
    def _sides(self) -> tuple[list[str], list[str]]:
        """The layout of a source, and of a text that the decoder writes: names of special tokens, and "a" or "b"."""
        layout, gives = self.model.recipe.layout, gives_of(self.model.recipe.hide)
        if "second text" not in gives:  # it writes the text that it reads
            names = [item.name for item in layouts.items(layout, 1)]
            return names, names
        items = layouts.items(layout, 2)
        source, target = ([item.name for item in items if item.segment == side] for side in (0, 1))
        return source, target

    @cached_property
    def end(self) -> int:
        """The token that ends a written text."""
        return self.model.tokenizer.role(self._sides[1][-1])

    @cached_property
    def first(self) -> list[int]:
        """What the decoder reads before the written text: the token that ends a text, and the special tokens before it."""
        names = self._sides[1]
        text = next(place for place, name in enumerate(names) if name in layouts.TEXTS)
        return [self.model.tokenizer.role(name) for name in ("sep", *names[:text])]

    def source(self, ids: list[int], tokens: int) -> tuple[list[int], int]:
        """The tokens of a source as they are read, and the largest number of tokens of its text."""
        names, most = self._sides[0], self.model.length - len(self.first)
        room = self.model.length - len(names) + 1
        require(
            tokens <= most,
            "--tokens {tokens} is more than the {most} tokens that the model can write: ask for fewer --tokens",
            tokens=tokens,
            most=most,
        )
        special = {name: [self.model.tokenizer.role(name)] for name in names if name not in layouts.TEXTS}
        return [i for name in names for i in special.get(name, ids[:room])], room

    def repeatable(self, texts: list[list[int]]) -> list[list[int]]:
        """The tokens of each text that count as repeated: none, those of the source do not count."""
        return [[] for _ in texts]

    def room(self, texts: Sequence[Sequence[int]], tokens: int) -> int:
        """The number of tokens that the cache has space for."""
        return -(-(len(self.first) + tokens) // ROOM) * ROOM

    def windows(self, texts: Sequence[Sequence[int]]) -> Windows:
        """A decoder never reads a part of its text again."""
        return Windows(texts, None)

    @torch.no_grad()
    def whole(self, texts: Sequence[Sequence[int]], room: int, written: int = 0) -> tuple[Tensor, Any]:
        """B V, the scores of the first token after each source, and the cache."""
        # with few different widths, a recording can be used again
        batch = left_padded(texts, self.model.tokenizer.vocabulary.pad, ROOM if records(self.model.device) else 1)
        state = self.model.system.read_source(batch.to(self.model.device), room)
        first = left_padded([self.first] * len(texts), 0).to(self.model.device)
        hidden, state = self.model.system.read_on(first, state)
        return self.allowed(last_scores(self.model, hidden, first)), state

    @torch.no_grad()
    def further(self, last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """B V, the scores after one more token of every row, and the cache. It never waits for the GPU: it can be recorded."""
        batch = one_more(last)
        hidden, state = self.model.system.read_on(batch, state)
        return self.allowed(last_scores(self.model, hidden, batch)), state

    def allowed(self, scores: Tensor) -> Tensor:
        """The same scores, minus infinity for tokens that are never drawn. `scores`: N V."""
        return scores.index_fill(1, self._never, -float("inf"))

    @cached_property
    def _never(self) -> Tensor:
        return never(self.model, self.end)
