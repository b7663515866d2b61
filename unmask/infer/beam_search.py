"""Beam search: extend the K best partial texts of every prompt at once, and keep the K best finished texts.

The score of a text is its log probability, divided by a number that grows with its length (`Beams.divisor`); the length
counts the end token. The search of a prompt ends when the best partial text is not better than the worst finished text that
is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.batch import Record
from unmask.infer.limits import Before, limited
from unmask.infer.sampling import Beams
from unmask.tree import texts_of

_NEVER = -float("inf")


@dataclass(frozen=True)
class Search(Record):
    """The partial texts and the finished texts of B prompts: K of each per prompt, the best first."""

    state: Any  # the cache of the network, with B*K rows
    number: Tensor  # number of new tokens in each partial text
    written: Tensor  # B K N, the partial texts
    total: Tensor  # B K, the log probabilities of the partial texts
    last: Tensor  # B*K, the last token of each partial text
    finished: Tensor  # B K N, texts with an end token, or with N tokens
    score: Tensor  # B K, the scores of the finished texts; minus infinity where there is none yet
    length: Tensor  # B K, number of tokens of the finished texts
    open: Tensor  # B, whether a better text may still be found
    before: Before  # what the limits know about the partial texts

    @property
    def rows(self) -> Tensor:
        """The new tokens of every row of the network's batch."""
        return self.written.flatten(0, 1)

    @property
    def going(self) -> Tensor:
        """Whether the search continues for any prompt."""
        return self.open.any()


def first_search(state: Any, scores: Tensor, how: Beams, tokens: int, prompts: Sequence[Sequence[int]]) -> Search:
    """The search before the first token. The K partial texts are equal, so only the first has a probability.

    `prompts` and `scores` have B*K rows."""
    beams, device = how.beams, scores.device
    rows = len(scores) // beams
    texts = torch.zeros(rows, beams, tokens, dtype=torch.long, device=device)
    never = torch.full((rows, beams), _NEVER, device=device)
    total = never.clone()
    total[:, 0] = 0.0
    return Search(
        state=state, number=torch.zeros((), dtype=torch.long, device=device), written=texts, total=total,
        last=torch.zeros(rows * beams, dtype=torch.long, device=device), finished=texts.clone(), score=never,
        length=torch.zeros(rows, beams, dtype=torch.long, device=device),
        open=torch.ones(rows, dtype=torch.bool, device=device), before=Before.of(prompts, scores, how),
    )  # fmt: skip


def follow(search: Search, scores: Tensor, how: Beams, end: int) -> Search:
    """The search after one more token. `scores`: B*K V, the scores of that token."""
    rows, beams, tokens = search.written.shape
    found = limited(scores.log_softmax(-1), search.before, search.rows, search.number, how, end)
    size, number = found.shape[1], search.number + 1
    totals = (search.total[:, :, None] + found.view(rows, beams, size)).flatten(1)
    # each partial text has only one end token, so at least K of 2K candidates continue
    total, where = totals.topk(min(2 * beams, totals.shape[1]))
    parent, token = where // size, where % size
    texts = _of(search.written, parent).index_copy(2, search.number[None], token[:, :, None])
    ends = (token == end) | (number >= tokens)
    search = _keep(search, texts, total, ends, how.divisor(number), number)
    total, chosen = torch.where(ends, _NEVER, total).topk(beams)
    parent, last = parent.gather(1, chosen), token.gather(1, chosen).flatten()
    row = (parent + torch.arange(rows, device=parent.device)[:, None] * beams).flatten()
    worst = search.score.amin(1)
    hope = worst == _NEVER if how.early else total[:, 0] / how.divisor(number) > worst
    return search.replace(
        state=texts_of(search.state, row), number=number, last=last, total=total,
        written=_of(texts, chosen), open=search.open & hope, before=search.before.after(last, row),
    )  # fmt: skip


def _keep(search: Search, texts: Tensor, total: Tensor, ends: Tensor, divisor: Tensor, number: Tensor) -> Search:
    """Update the finished texts: the best of the earlier ones and of the K most likely candidates that end now."""
    beams = search.score.shape[1]
    best = torch.arange(total.shape[1], device=total.device) < beams
    score = torch.where(ends & best & search.open[:, None], total / divisor, _NEVER)
    score, kept = torch.cat((search.score, score), 1).topk(beams)
    finished = _of(torch.cat((search.finished, texts), 1), kept)
    length = torch.cat((search.length, number.expand(total.shape)), 1).gather(1, kept)
    return search.replace(finished=finished, score=score, length=length)


def _of(texts: Tensor, which: Tensor) -> Tensor:
    """Select texts of each prompt by index. `texts`: B K N; `which`: B K."""
    return texts.gather(1, which[:, :, None].expand(-1, -1, texts.shape[2]))
