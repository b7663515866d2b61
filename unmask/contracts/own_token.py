"""Own token: a loss does not read the token that it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from unmask.axes import COLUMN_OF_TARGETS, gives_of, rules
from unmask.batch import Batch, Targets
from unmask.contracts.broken import expect
from unmask.contracts.case import Case, StageTrack
from unmask.contracts.contract import Contract
from unmask.contracts.rows import predicting, respelled, with_targets
from unmask.system import objectives
from unmask.system.tracks import joined

ROWS = 2
MANY = 8  # if entities are predicted: few tokens have one, and most of them stay visible
TARGETS = 4  # the number of targets of each name whose tokens are changed, one at a time
CLOSE = 1e-3
SHORT = 16  # tokens in a row that is read once for each token of the vocabulary
SHOWN = 0.5  # the share of covered targets that still show their token must be smaller than this


def losses_read(case: Case) -> None:
    """Change the token of a target but not the id to predict: the loss of that target must not change."""
    for way in case.ways:
        raw = case.rows(way, MANY if "entity scores" in case.gives else ROWS)
        batch = case.hide(way, raw)
        for name in predicting(batch).targets:
            before = each_loss(case.system, batch, name)
            expect(before, f"In {way} a loss must predict the targets {name!r}, but none does.")
            for number in _tried(way, raw, batch, name, case):
                other = _other_token(case, way, raw, batch, name, number)
                for loss, values in each_loss(case.system, other, name).items():
                    expect(torch.equal(values[number], before[loss][number]), f"In {way} the loss {loss!r} must not depend on the "
                           f"token that it predicts, but another token changed it from {before[loss][number]:.4f} to "
                           f"{values[number]:.4f}.")  # fmt: skip


def each_loss(system: Any, batch: Batch, name: str) -> dict[str, Tensor]:
    """The loss of every target of this name, N each, by the names of the losses that predict it.

    A loss is the sum of each target's loss times its weight. So the loss of a target is the derivative by its weight.
    """
    targets = predicting(batch).targets[name]
    weight = targets.weight.clone().requires_grad_()
    weighted = with_targets(batch, name, targets.replace(weight=weight))
    losses = {n: loss.total for n, loss in system.step(weighted, None)[0].items() if loss.total.requires_grad}
    found = {
        n: torch.autograd.grad(total, weight, retain_graph=True, allow_unused=True)[0] for n, total in losses.items()
    }
    return {n: values for n, values in found.items() if values is not None}


def _tried(way: StageTrack, raw: Batch, batch: Batch, name: str, case: Case) -> list[int]:
    """Some targets from all over the batch. If the rules replace tokens, only targets that are replaced by [MASK]; if they
    replace entities, only targets without one."""
    targets = predicting(batch).targets[name]
    usable = targets.weight > 0
    if name in COLUMN_OF_TARGETS:
        usable = usable & (batch.columns[COLUMN_OF_TARGETS[name]].flatten()[targets.where] < 0)
    elif "covered" in gives_of(way.choices.hide):
        shown = batch.ids.flatten()[targets.where]
        usable = usable & (shown == case.vocabulary.mask)
        _check_covered(way, targets, shown, name)
    numbers = usable.nonzero()[:, 0].tolist()
    expect(numbers, f"In {way} some targets {name!r} must be hidden from the network, but none is.")
    return [int(number) for number in numbers[:: max(1, len(numbers) // TARGETS)]]


def _check_covered(way: StageTrack, targets: Targets, shown: Tensor, name: str) -> None:
    used = targets.weight > 0
    share = (shown == targets.ids)[used].float().mean()
    expect(
        share < SHOWN,
        f"In {way} the text must no longer show most of the targets {name!r}, but it shows {share:.0%} of them.",
    )


def _other_token(case: Case, way: StageTrack, raw: Batch, batch: Batch, name: str, number: int) -> Batch:
    """The batch, hidden again with another token (or entity) at the place of a target. The ids to predict do not change."""
    kept = predicting(batch).targets
    place = kept[name].where[number]
    if name in COLUMN_OF_TARGETS:
        values = raw.columns[COLUMN_OF_TARGETS[name]].clone()
        values.view(-1)[place] = (values.view(-1)[place] + 1) % (values.max() + 1)
        other = case.hide(way, raw.replace(columns=raw.columns | {COLUMN_OF_TARGETS[name]: values}))
    else:
        ids = raw.ids.clone()
        ids.view(-1)[place] = next(token for token in _ordinary(case) if token != int(ids.view(-1)[place]))
        row, column = int(place) // raw.shape[1], int(place) % raw.shape[1]
        other = case.hide(way, respelled(raw.replace(ids=ids), row, column))
    found = predicting(other).targets
    expect(all(torch.equal(found[n].where, t.where) for n, t in kept.items()), f"In {way} the choice of targets "
           "must not depend on which ordinary token is at a place, but it does.")  # fmt: skip
    for other_name, targets in kept.items():
        other = with_targets(other, other_name, targets)
    return other


def _ordinary(case: Case) -> Iterator[int]:
    return (token for token in reversed(range(case.vocabulary.size)) if token not in case.vocabulary.special)


def answers(case: Case) -> None:
    """Check that the probabilities of all tokens at a target add up to 1. A loss that reads its answer gives more."""
    for way in case.ways:
        hidden = case.hide(way, case.rows(way, 1, SHORT))
        for name, targets in ((n, t) for n, t in predicting(hidden).targets.items() if n not in COLUMN_OF_TARGETS):
            number = int(targets.weight.argmax())
            for loss, values in each_loss(case.system, _each_answer(case, hidden, name, number), name).items():
                total = (-values.view(case.vocabulary.size, -1)[:, number]).exp().sum()
                expect(
                    loss not in _scoring(case) or abs(total - 1) < CLOSE,
                    f"In {way} the probabilities that the loss {loss!r} gives to all tokens at a target must add up to 1, but they "
                    f"add up to {total:.4f}. If the sum is larger than 1, the loss may read the answer.",
                )


def _each_answer(case: Case, hidden: Batch, name: str, number: int) -> Batch:
    """A copy of the row for each token of the vocabulary. In each copy, that token is the answer at one target."""
    size = case.vocabulary.size
    rows = joined([hidden] * size)
    targets = predicting(rows).targets[name]
    ids = targets.ids.view(size, -1).clone()
    ids[:, number] = torch.arange(size)
    return with_targets(rows, name, targets.replace(ids=ids.flatten())).replace(tracks=())


def _scoring(case: Case) -> list[str]:
    """The names of the losses that score every token of the vocabulary."""
    own = case.recipe.system.losses if "token scores" in gives_of(case.recipe.system) else ()  # such as a generator's
    return [*own, *(name for name, part in objectives(case.recipe).items() if "token scores" in part.gives)]


def _hides_targets(case: Case) -> bool:
    """Whether there are targets, and the text does not show them. A decoder that writes the whole text may copy most of it."""
    given = [gives_of(rule) for way in case.ways for rule in rules(way.choices.hide)]
    targets = [gives for gives in given if any(fact.startswith("targets:") for fact in gives)]
    return bool(targets) and all("decoder rows" not in gives or gives & {"covered", "second text"} for gives in targets)


CONTRACTS = (
    Contract("own token", "A loss does not read the token that it predicts.", losses_read, _hides_targets),
    Contract("answers", "The probabilities of all tokens at a target add up to 1.", answers, lambda case: bool(_scoring(case))),
)  # fmt: skip
