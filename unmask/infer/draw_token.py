"""Add one token to every text. The token is drawn on the device, by a pure function of the texts and their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask import chance
from unmask.batch import Record
from unmask.infer.limits import Before, limited
from unmask.infer.sampling import Greedy, Sampling, pick

_PURPOSE = chance.purpose("generate")


@dataclass(frozen=True)
class Draft(Record):
    """Texts that are being generated."""

    state: Any  # the cache of the network; None: there is no cache
    address: Tensor  # B, the random seed of each text
    number: Tensor  # number of new tokens in each text
    written: Tensor  # B N, the new tokens, at most N; the end token is repeated up to the current step
    last: Tensor  # B, the last new token of each text
    ended: Tensor  # B, whether the text contains the end token
    before: Before  # what the limits know about the texts
    scores: Tensor | None = None  # B V, the model's scores of the last new token; None: they are not kept

    @property
    def rows(self) -> Tensor:
        """The new tokens of every row of the network's batch."""
        return self.written

    @property
    def going(self) -> Tensor:
        """Whether any text has not ended yet."""
        return ~self.ended.all()


def first_draft(
    state: Any, scores: Tensor, address: Tensor, tokens: int, prompts: Sequence[Sequence[int]], how: Greedy | Sampling, *,
    keep: bool = False,
) -> Draft:  # fmt: skip
    """The draft before the first token. `scores`: B V, used only for its shape and its device. `keep`: keep the scores of
    each token."""
    rows, device = len(scores), scores.device
    last = torch.zeros(rows, dtype=torch.long, device=device)
    return Draft(
        state=state, address=address.to(device), number=torch.zeros((), dtype=torch.long, device=device),
        written=torch.zeros(rows, tokens, dtype=torch.long, device=device), last=last,
        ended=torch.zeros(rows, dtype=torch.bool, device=device), before=Before.of(prompts, scores, how),
        scores=scores if keep else None,
    )  # fmt: skip


def draw(draft: Draft, scores: Tensor, how: Greedy | Sampling, end: int) -> Draft:
    """The texts with one more token. `scores`: B V, the scores of that token."""
    chosen_by = limited(scores, draft.before, draft.written, draft.number, how, end)
    token = pick(chosen_by, how, chance.uniform(draft.address, draft.number))
    token = torch.where(draft.ended, end, token)
    return draft.replace(
        written=draft.written.index_copy(1, draft.number[None], token[:, None]), last=token,
        number=draft.number + 1, ended=draft.ended | (token == end), before=draft.before.after(token),
        scores=None if draft.scores is None else scores,
    )  # fmt: skip


def addresses(prompts: Sequence[str], samples: int, seed: int) -> Tensor:
    """B, a random seed for every sample of every prompt. It does not depend on the other prompts."""
    number = torch.arange(samples)
    return torch.cat([chance.draw(number, seed, _PURPOSE, chance.purpose(prompt)) for prompt in prompts])
