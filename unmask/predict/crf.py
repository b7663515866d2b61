"""A linear-chain CRF: scores of tags that follow each other, and the sums and maxima over all sequences of tags."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class CRF(nn.Module):
    """Scores of the first tag, of the last tag, and of each tag after another (Lafferty et al. 2001).

    W: places of a sequence. `real`: B W, True on the places that are used; these come first."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.zeros(tags))
        self.last = nn.Parameter(torch.zeros(tags))
        self.after = nn.Parameter(torch.zeros(tags, tags))  # row: the tag before, column: the tag

    def forward(self, scores: Tensor, tags: Tensor, real: Tensor) -> Tensor:
        """B, the negative log-likelihood of each sequence of tags; 0 without tags. `scores`: B W K. `tags`: B W."""
        whole = torch.logsumexp(self._before(scores, real, torch.logsumexp)[:, -1] + self.last, 1)
        return (whole - self._of(scores, tags, real)) * real[:, 0]

    def best(self, scores: Tensor, real: Tensor) -> Tensor:
        """B W K, the score of the best sequence that gives this place this tag. The largest ones are the best sequence."""
        before = self._before(scores, real, torch.amax)
        return before + self._behind(scores, real)

    def _of(self, scores: Tensor, tags: Tensor, real: Tensor) -> Tensor:
        """B, the score of each sequence of tags."""
        own = scores.gather(2, tags[..., None])[..., 0] * real
        pairs = self.after[tags[:, :-1], tags[:, 1:]] * real[:, 1:]
        end = tags.gather(1, (real.sum(1, keepdim=True) - 1).clamp(min=0))[:, 0]
        return own.sum(1) + pairs.sum(1) + self.first[tags[:, 0]] + self.last[end]

    def _before(self, scores: Tensor, real: Tensor, over: Callable[..., Tensor]) -> Tensor:
        """B W K, the sum or maximum over all sequences that end with this tag here; unused places repeat the last one."""
        found = [self.first + scores[:, 0]]
        for place in range(1, scores.shape[1]):
            following = over(found[-1][:, :, None] + self.after, 1) + scores[:, place]
            found.append(torch.where(real[:, place, None], following, found[-1]))
        return torch.stack(found, 1)

    def _behind(self, scores: Tensor, real: Tensor) -> Tensor:
        """B W K, the maximum over all sequences that go on after this tag here, without its own score."""
        found = [self.last.expand_as(scores[:, -1])]
        for place in range(scores.shape[1] - 1, 0, -1):
            earlier = torch.amax(self.after + (scores[:, place] + found[-1])[:, None], 2)
            found.append(torch.where(real[:, place, None], earlier, self.last))
        return torch.stack(found[::-1], 1)
