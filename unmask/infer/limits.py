"""The tokens that may follow a text: repeated tokens become less likely, repeated sequences and an early end are forbidden.

Everything is computed on the device, with shapes that stay the same in all steps, so that a step can be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.batch import Record
from unmask.infer.sampling import Decoding

_NEVER = -float("inf")
_EMPTY = -1  # in `given`: before the text
_WIDTH = 64  # `given` has a multiple of this number of columns, so that a recording can be used again


@dataclass(frozen=True)
class Before(Record):
    """What the limits must know about the texts before their new tokens, for each row of the network's batch."""

    seen: Tensor | None  # B V, which tokens the text contains, with its prompt; None: there is no penalty
    given: Tensor | None  # B P, the prompts, aligned on the right; None: sequences may be repeated

    @classmethod
    def of(cls, prompts: Sequence[Sequence[int]], scores: Tensor, how: Decoding) -> Before:
        """`scores`: B V, used only for its shape and its device."""
        seen = _seen(prompts, scores) if how.repetition_penalty != 1 else None
        given = _aligned(prompts).to(scores.device) if how.no_repeat else None
        return cls(seen, given)

    def after(self, last: Tensor, rows: Tensor | None = None) -> Before:
        """With one more token in every text. `rows`: the row that each text continues; None: its own.

        Rows of one prompt are equal in `given`, and a text never continues one of another prompt."""
        if self.seen is None:
            return self
        seen = self.seen if rows is None else self.seen[rows]
        return self.replace(seen=seen.scatter(1, last[:, None], True))


def limited(scores: Tensor, before: Before, written: Tensor, number: Tensor, how: Decoding, end: int) -> Tensor:
    """B V, the scores of the next token with the limits. `written`: B N, the new tokens, of which `number` are used."""
    if before.seen is not None:
        scores = _penalised(scores, before.seen, how.repetition_penalty)
    if before.given is not None:
        scores = scores.masked_fill(_repeating(before.given, written, number, how.no_repeat, scores.shape[1]), _NEVER)
    if how.least:
        ends = torch.arange(scores.shape[1], device=scores.device) == end
        scores = scores.masked_fill(ends & (number < how.least), _NEVER)
    return scores


def _penalised(scores: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Seen tokens are made less likely: positive scores are divided, negative scores are multiplied."""
    return torch.where(seen, torch.where(scores > 0, scores / penalty, scores * penalty), scores)


def _repeating(given: Tensor, written: Tensor, number: Tensor, size: int, vocabulary: int) -> Tensor:
    """B V, which tokens would repeat a sequence of `size` tokens: the last `size` - 1 tokens occurred before it."""
    whole, used = torch.cat((given, written), 1), given.shape[1] + number
    if whole.shape[1] < size:
        return torch.zeros(len(whole), vocabulary, dtype=torch.bool, device=whole.device)
    starts = torch.arange(whole.shape[1] - size + 1, device=whole.device)
    equal = (starts + size <= used).expand(len(whole), -1)  # B S, whether a sequence that begins here is a repetition
    for place in range(size - 1):
        last = whole.index_select(1, (used - size + 1 + place).clamp(min=0)[None])
        here = whole[:, place : place + len(starts)]
        equal = equal & (here == last) & (here != _EMPTY)
    following = torch.where(equal, whole[:, size - 1 :], vocabulary)
    following = torch.where(following == _EMPTY, vocabulary, following)
    found = torch.zeros(len(whole), vocabulary + 1, dtype=torch.bool, device=whole.device)
    return found.scatter(1, following, True)[:, :vocabulary]


def _seen(texts: Sequence[Sequence[int]], scores: Tensor) -> Tensor:
    seen = torch.zeros(scores.shape, dtype=torch.bool)
    for row, text in enumerate(texts):
        seen[row, list(text)] = True
    return seen.to(scores.device)


def _aligned(texts: Sequence[Sequence[int]]) -> Tensor:
    width = -(-max(map(len, texts)) // _WIDTH) * _WIDTH
    return torch.tensor([[_EMPTY] * (width - len(text)) + list(text) for text in texts], dtype=torch.long)
