"""Compute the scores of the next token, after whole texts or after one more token, and the window of a text to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unmask.axes import gives_of
from unmask.batch import Batch, Hidden
from unmask.errors import UserError, require
from unmask.infer.batches import left_padded, one_more, with_gap
from unmask.infer.model import Model
from unmask.text import layout as layouts

ROOM = 64  # the length of a cache is a multiple of this, so that a recording can be used again


@dataclass(frozen=True)
class NextToken:
    """Reads texts, and scores the next token.

    A model that reads from left to right continues its text. A model that writes a second text reads a source first. If it
    was trained to fill gaps (UniLM), a [MASK] is read after the last token, and the token that is predicted there comes
    next; the [MASK] itself is not kept."""

    model: Model
    cached: bool = True  # whether there is a cache; without it every text is read again for every token

    def __post_init__(self) -> None:
        self.model.head("token scores", "generate text")
        if not self.model.recipe.writes & {"left", "second"}:
            decodes = "decoder" in gives_of(self.model.recipe.system)  # such a model fills no gaps either
            raise UserError(
                "{folder} {why}adapt it with 'unmask adapt --task write'",
                folder=self.model.folder,
                why="was trained to write parts of a text: "
                if decodes
                else "does not read from left to right: use 'unmask fill', or ",
            )
        require(
            not self.cached or not self.second or self.model.system.backbone.can_cache,
            "{folder} cannot keep two texts in a cache: generate with cached=False (--no-cache)",
            folder=self.model.folder,
        )
        self.model.system.eval()

    @property
    def second(self) -> bool:
        """Whether a second text is written, and not a continuation of the first."""
        return "second" in self.model.recipe.writes

    @cached_property
    def end(self) -> int:
        """The token that ends a text: that between two documents, or after the second text. An empty prompt begins with it."""
        return self.model.tokenizer.role(self._after[0] if self.second else "sep")

    @property
    def _after(self) -> list[str]:
        """The special tokens that come after the second text."""
        names = [item.name for item in layouts.items(self.model.recipe.layout, 2)]
        found = names[names.index("b") + 1 :]
        require(
            bool(found),
            "the layout {layout!r} has no token that ends the second text, so writing would never end: adapt a model whose "
            "layout has [SEP] after b",
            layout=self.model.recipe.layout,
        )
        return found

    def source(self, ids: list[int], tokens: int) -> tuple[list[int], int]:
        """The tokens of a source as they are read, and the largest number of tokens of its text."""
        names = [item.name for item in layouts.items(self.model.recipe.layout, 2)]
        room = self.model.length - tokens - layouts.overhead(self.model.recipe.layout, 2)
        require(
            room >= 1,
            (
                "--tokens {tokens} leaves no room for the source, because the model reads {length} tokens in all: ask "
                "for fewer --tokens"
            ),
            tokens=tokens,
            length=self.model.length,
        )
        special = {name: [self.model.tokenizer.role(name)] for name in names if name not in layouts.TEXTS}
        return [i for name in names[: names.index("b")] for i in special.get(name, ids[:room])], room

    def room(self, texts: Sequence[Sequence[int]], tokens: int) -> int:
        """The number of tokens that the cache has space for."""
        context = self.model.length
        longest = -(-(max(map(len, texts)) + tokens) // ROOM) * ROOM
        return min(context, self.model.system.backbone.reach or context, longest)

    def windows(self, texts: Sequence[Sequence[int]]) -> Windows:
        """The parts of the texts that are read."""
        return Windows(texts, self.model.length)

    def repeatable(self, texts: list[list[int]]) -> list[list[int]]:
        """The tokens of each text that count as repeated: of a second text only its own, not those of the source."""
        return [[] for _ in texts] if self.second else texts

    @cached_property
    def _gap(self) -> int | None:
        """The [MASK] that is read after the last token; None: the last token itself predicts the next one."""
        gives = gives_of(self.model.recipe.all_tracks()[self.model.recipe.writing].hide)
        filled = "covered" in gives and "one earlier" not in gives
        return self.model.tokenizer.role("mask") if filled else None

    @torch.no_grad()
    def whole(self, texts: Sequence[Sequence[int]], room: int, written: int = 0) -> tuple[Tensor, Any]:
        """B V, the scores after each text, and the cache, which has space for `room` tokens. `written`: how many tokens at
        the end of each text are new."""
        batch = left_padded(texts, self.model.tokenizer.vocabulary.pad).to(self.model.device)
        place = torch.arange(batch.shape[1], device=batch.ids.device)
        batch = self._prepared(batch, place >= batch.shape[1] - written)
        state = self.model.system.backbone.cache(len(texts), room + (self._gap is not None)) if self.cached else None
        hidden, state = self.model.system.read_on(batch, state)
        return self.allowed(last_scores(self.model, hidden, batch)), state if self.cached else None

    @torch.no_grad()
    def further(self, last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """B V, the scores after one more token of every row, and the cache. It never waits for the GPU: it can be recorded."""
        batch = one_more(last)
        batch = self._prepared(batch, torch.ones_like(last[:1], dtype=torch.bool))
        hidden, state = self.model.system.read_on(batch, state)
        return self.allowed(last_scores(self.model, hidden, batch)), state

    def _prepared(self, batch: Batch, new: Tensor) -> Batch:
        """The batch with the segments of two texts and the [MASK], if the model needs them. `new`: T, the new tokens."""
        if not self.second:
            return batch
        batch = batch.replace(segment=new.long().expand(batch.shape))
        return batch if self._gap is None else with_gap(batch, self._gap)

    def allowed(self, scores: Tensor) -> Tensor:
        """The same scores, minus infinity for tokens that are never drawn. `scores`: N V."""
        return scores.index_fill(1, self._never, -float("inf"))

    @cached_property
    def _never(self) -> Tensor:
        return never(self.model, self.end)


def last_scores(model: Model, hidden: Hidden, batch: Batch) -> Tensor:
    """B V, the scores after the last token."""
    head: Any = model.head("token scores", "generate text")
    scores: Tensor = head.decode(Hidden((hidden.for_prediction[:, -1:],)), batch)[:, -1].float()
    return scores


def never(model: Model, end: int) -> Tensor:
    """The tokens that are never written: the end token is the only special token that may follow a text."""
    special = [i for i in model.tokenizer.vocabulary.special if i != end]
    return torch.tensor(special, dtype=torch.long, device=model.device)


class Windows:
    """The part of each text that is read: all of it, until it is longer than the context; then its last half context.

    Then the window grows again. The window of a text depends only on its own length, not on the other texts. Without a
    context, all of a text is read."""

    def __init__(self, texts: Sequence[Sequence[int]], context: int | None) -> None:
        self.texts, self.context = texts, context
        self.begins = [0 if context is None else max(0, len(text) - context) for text in texts]

    def full(self, written: int) -> bool:
        """Whether the window of any text is longer than the context after `written` new tokens."""
        if self.context is None:
            return False
        return any(len(t) + written - b > self.context for t, b in zip(self.texts, self.begins, strict=True))

    def of(self, written: Sequence[Sequence[int]]) -> list[list[int]]:
        """The window of each text, including the new tokens after it."""
        found = []
        for row, (text, more) in enumerate(zip(self.texts, written, strict=True)):
            ids = [*text, *more]
            if self.context is not None and len(ids) - self.begins[row] > self.context:
                self.begins[row] = len(ids) - max(1, self.context // 2)
            found.append(ids[self.begins[row] :])
        return found
