"""Compute the scores of the next token, after whole texts or after one more token, and the window of a text to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.infer.batches import left_padded, one_more
from unmask.infer.model import Model


@dataclass(frozen=True)
class NextToken:
    """Reads texts with a left-to-right model, and scores the next token."""

    model: Model  # it must read from left to right
    cached: bool = True  # whether there is a cache; without it every text is read again for every token

    def __post_init__(self) -> None:
        self.model.head("token scores", "generate text")
        left_to_right = "left" in self.model.recipe.writes
        require(left_to_right, "{folder} does not read from left to right: use 'unmask fill'", folder=self.model.folder)
        self.model.system.eval()

    @property
    def end(self) -> int:
        """The token between two documents. It ends a text, and an empty prompt begins with it."""
        return self.model.tokenizer.role("sep")

    @torch.no_grad()
    def whole(self, texts: Sequence[Sequence[int]], room: int) -> tuple[Tensor, Any]:
        """B V, the scores after each text, and the cache, which has space for `room` tokens."""
        batch = left_padded(texts, self.model.tokenizer.vocabulary.pad).to(self.model.device)
        state = self.model.system.backbone.cache(len(texts), room) if self.cached else None
        hidden, state = self.model.system.read_on(batch, state)
        return self._scores(hidden, batch), state if self.cached else None

    @torch.no_grad()
    def further(self, last: Tensor, state: Any) -> tuple[Tensor, Any]:
        """B V, the scores after one more token of every row, and the cache. It never waits for the GPU: it can be recorded."""
        batch = one_more(last)
        hidden, state = self.model.system.read_on(batch, state)
        return self._scores(hidden, batch), state

    def _scores(self, hidden: Hidden, batch: Batch) -> Tensor:
        """The scores after the last token. The end token is the only special token that may follow."""
        head: Any = self.model.head("token scores", "generate text")
        return self.allowed(head.decode(Hidden((hidden.for_prediction[:, -1:],)), batch)[:, -1].float())

    def allowed(self, scores: Tensor) -> Tensor:
        """The same scores, minus infinity for tokens that are never drawn. `scores`: N V."""
        return scores.index_fill(1, self._never, -float("inf"))

    @cached_property
    def _never(self) -> Tensor:
        special = [i for i in self.model.tokenizer.vocabulary.special if i != self.end]
        return torch.tensor(special, dtype=torch.long, device=self.model.device)


class Windows:
    """The part of each text that is read: all of it, until it is longer than the context; then its last half context.

    Then the window grows again. The window of a text depends only on its own length, not on the other texts."""

    def __init__(self, texts: Sequence[Sequence[int]], context: int) -> None:
        self.texts, self.context = texts, context
        self.begins = [max(0, len(text) - context) for text in texts]

    def full(self, written: int) -> bool:
        """Whether the window of any text is longer than the context after `written` new tokens."""
        return any(len(t) + written - b > self.context for t, b in zip(self.texts, self.begins, strict=True))

    def of(self, written: Sequence[Sequence[int]]) -> list[list[int]]:
        """The window of each text, including the new tokens after it."""
        found = []
        for row, (text, more) in enumerate(zip(self.texts, written, strict=True)):
            ids = [*text, *more]
            if len(ids) - self.begins[row] > self.context:
                self.begins[row] = len(ids) - max(1, self.context // 2)
            found.append(ids[self.begins[row] :])
        return found
