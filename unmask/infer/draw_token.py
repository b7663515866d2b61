"""Step: one more token of every text, drawn on the device; a pure function of the texts as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Record
from unmask.infer.sampling import Greedy, Sampling, penalised, pick

_PURPOSE = chance.purpose("generate")


@dataclass(frozen=True)
class Draft(Record):
    """Texts that are being written."""

    state: Any  # what the network keeps of what it read; none: nothing
    address: Tensor  # B, of each text's randomness
    number: Tensor  # how many tokens each has
    written: Tensor  # B N, the new tokens, N at most; the end goes on after the end
    last: Tensor  # B, the last of them
    ended: Tensor  # B, whether the end is among them
    seen: Tensor | None  # B V, which tokens stand in the text, the prompt included; none: it does not matter

    @property
    def rows(self) -> Tensor:
        """The new tokens of each row that the network reads."""
        return self.written

    @property
    def going(self) -> Tensor:
        """Whether there is anything left to do."""
        return ~self.ended.all()


def first_draft(
    state: Any, scores: Tensor, address: Tensor, tokens: int, prompts: Sequence[Sequence[int]], penalty: float
) -> Draft:
    """Nothing is written yet; `scores`, of the first token, tell the rows, the vocabulary and the device."""
    rows, device = len(scores), scores.device
    last = torch.zeros(rows, dtype=torch.long, device=device)
    return Draft(
        state=state, address=address.to(device), number=torch.zeros((), dtype=torch.long, device=device),
        written=torch.zeros(rows, tokens, dtype=torch.long, device=device), last=last,
        ended=torch.zeros(rows, dtype=torch.bool, device=device), seen=seen_in(prompts, scores, penalty),
    )  # fmt: skip


def draw(draft: Draft, scores: Tensor, how: Greedy | Sampling, end: int) -> Draft:
    """The texts with one more token, given the scores of it (B V)."""
    scores = penalised(scores, draft.seen, how.repetition_penalty)
    token = pick(scores, how, chance.uniform(draft.address, draft.number))
    token = torch.where(draft.ended, end, token)
    return draft.replace(
        written=draft.written.index_copy(1, draft.number[None], token[:, None]), last=token,
        number=draft.number + 1, ended=draft.ended | (token == end),
        seen=None if draft.seen is None else draft.seen.scatter(1, token[:, None], True),
    )  # fmt: skip


def addresses(prompts: Sequence[str], samples: int, seed: int) -> Tensor:
    """B, for every sample of every prompt the address of its randomness: the other prompts are no part of it."""
    number = torch.arange(samples)
    return torch.cat([chance.draw(number, seed, _PURPOSE, chance.purpose(prompt)) for prompt in prompts])


def seen_in(texts: Sequence[Sequence[int]], scores: Tensor, penalty: float) -> Tensor | None:
    """B V, which tokens stand in each text, if they are penalised."""
    if penalty == 1:
        return None
    seen = torch.zeros(scores.shape, dtype=torch.bool)
    for row, text in enumerate(texts):
        seen[row, list(text)] = True
    return seen.to(scores.device)
