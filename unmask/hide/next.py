"""Next: every token predicts the one after it. Previous: the one before it. Nothing: no token is predicted."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unmask.axes import Need
from unmask.batch import Batch, Targets, Vocabulary
from unmask.errors import require
from unmask.hide.rule import Rule


@dataclass(frozen=True)
class Next(Rule):
    """Every token predicts the one after it; `see` must hide the future.

    Paper: GPT (Radford et al. 2018). Needs: a view without the future. Produces: the targets "tokens" at every token but
    the last, and "ahead_2" and so on for tokens further ahead. Used by: gpt, gpt2, char-transformer, transformer-xl.
    Differs from Masked: the text does not change.
    """

    ahead: int = 1  # how many tokens ahead are predicted; 2: the next token and the one after it
    second: bool = False  # predict only the tokens of the second of two texts, and the token that ends it

    def __post_init__(self) -> None:
        require(self.ahead >= 1, "hide.ahead must be 1 or more, got {ahead}", ahead=self.ahead)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its targets, the next token first."""
        return ("tokens", *(f"ahead_{number}" for number in range(2, self.ahead + 1)))

    @property
    def needs(self) -> tuple[Need, ...]:
        pairs = Need("pairs", "it predicts the second of two texts", unless="second=false")
        return (Need("future hidden", "it predicts the next token"),) + (pairs,) * self.second

    @property
    def gives(self) -> frozenset[str]:
        found = {"from before", *(f"targets:{name}" for name in self.names)}
        return frozenset(found | ({"second text"} if self.second else set()))

    @property
    def must_use(self) -> frozenset[str]:
        return frozenset(f"targets:{name}" for name in self.names[1:])

    @property
    def share(self) -> float:
        return 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        found = {name: _ahead(batch, number, self.second) for number, name in enumerate(self.names, 1)}
        return batch.replace(targets=batch.targets | found)


@dataclass(frozen=True)
class Previous(Rule):
    """Every token predicts the one before it; the past must be hidden.

    Paper: ELMo (Peters et al. 2018). Needs: vectors that do not see the past. Produces: the targets "previous" at every
    token but the first. Used by: elmo, together with Next. Differs from Next: the direction.
    """

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("past hidden", "it predicts the previous token"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"targets:previous"})

    @property
    def must_use(self) -> frozenset[str]:
        return self.gives

    @property
    def share(self) -> float:
        return 1.0

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        after = _ahead(batch, 1, second=False)
        before = after.replace(
            where=after.at, at=after.where, start=after.at, end=after.at, ids=batch.ids[:, :-1].flatten()
        )
        return batch.replace(targets=batch.targets | {"previous": before})


@dataclass(frozen=True)
class Nothing(Rule):
    """Hide nothing: only the label of an example is predicted.

    Paper: every fine-tuning. Needs: labels. Produces: no targets. Used by: adapted models.
    Differs from Next: the text is not predicted at all.
    """

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        return batch


def _ahead(batch: Batch, count: int, second: bool) -> Targets:
    """For every token, the token `count` places ahead as its target, if both belong to the same example.

    `second`: only targets in the second text count."""
    rows, length = batch.shape
    here = torch.arange(rows * length, device=batch.ids.device).view(rows, length)[:, :-count].flatten()
    same = batch.real[:, count:] & (batch.example[:, count:] == batch.example[:, :-count])
    if second:
        same = same & (batch.segment[:, count:] == 1)
    there, weight = here + count, same.flatten().float()
    return Targets(where=there, at=here, ids=batch.ids[:, count:].flatten(), start=there, end=there, weight=weight)
