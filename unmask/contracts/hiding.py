"""Hiding: targets are the original tokens, all other tokens survive, special tokens are never hidden, units stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.axes import rules
from unmask.batch import Batch, Targets
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, ROWS, SEED, Case, Way, hides_units, is_by_units, ways_by_units
from unmask.contracts.contract import Contract
from unmask.contracts.rows import predicted, used

VISITS = 3
LONG = 3 * LENGTH  # enough tokens for several units


@dataclass(frozen=True)
class Applied:
    """One rule, and the batch before and after it."""

    rule: Any
    before: Batch
    after: Batch

    @property
    def chosen(self) -> Tensor:
        """B T, True on the tokens that this rule made targets."""
        return predicted(self.after) & ~predicted(self.before)

    @property
    def visit(self) -> Tensor:
        """B, the visit that decides the choices: versions made once come round again."""
        copies = self.rule.copies
        return self.before.visit if copies is None else self.before.visit % copies


def applied(case: Case, way: Way, batch: Batch) -> Iterator[Applied]:
    """The rules of a way, one after the other."""
    batch = way.choices.see.draw(batch, SEED)
    for rule in rules(way.choices.hide):
        after = rule.apply(batch, case.vocabulary, SEED)
        yield Applied(rule, batch, after)
        batch = after


def batches(case: Case, way: Way, length: int = LENGTH) -> Iterator[Batch]:
    """The first rows at several visits."""
    rows = case.rows(way, ROWS, length)
    return (rows.replace(visit=rows.visit + visit) for visit in range(VISITS))


def targets(case: Case) -> None:
    """Of every name: the original ids at their places, each place once, predicted from a place of the same example."""
    for way in case.ways:
        for raw in batches(case, way):
            hidden = case.hide(way, raw)
            for name, found in hidden.targets.items():
                _check_targets(raw, found, f"In {way} the targets {name!r}", _distances(name))


def _distances(name: str) -> tuple[int, ...]:
    """How far before its token a target of this name may be predicted."""
    ahead = name.removeprefix("ahead_")
    return (int(ahead),) if ahead.isdecimal() else (0, 1)


def _check_targets(raw: Batch, found: Targets, what: str, distances: tuple[int, ...]) -> None:
    where, at = used(found, "where"), used(found, "at")
    expect(len(where) > 0, f"{what} must hold some tokens, and they hold none.")
    wrong = raw.ids.flatten()[where] != used(found, "ids")
    expect(
        not wrong.any(),
        f"{what} must be the original tokens at their places, and {int(wrong.sum())} of {len(where)} are not.",
    )
    expect(len(where.unique()) == len(where), f"{what} must name each place once, and some places are named twice.")
    expect(set((where - at).unique().tolist()) <= set(distances), f"{what} must be predicted {' or '.join(map(str, distances))} "
           f"places before their tokens, and the distances are {(where - at).unique().tolist()}.")  # fmt: skip
    example = raw.example.flatten() + 1000 * torch.arange(raw.ids.numel()).div(raw.shape[1], rounding_mode="floor")
    expect(
        torch.equal(example[where], example[at]),
        f"{what} must be predicted from a place of their own example, and some are not.",
    )
    start, end = used(found, "start"), used(found, "end")
    expect(
        ((start <= where) & (where <= end)).all(),
        f"{what} must lie between the start and the end of their run, and some do not.",
    )
    expect(
        torch.equal(example[start], example[end]),
        f"{what} must begin and end their run in one example, and some do not.",
    )


def survival(case: Case) -> None:
    """Every token that a rule does not choose is still there; a rule that moves tokens says where each came from."""
    for way in case.ways:
        for raw in batches(case, way):
            last = raw
            for step in applied(case, way, raw):
                _check_survival(case, way, step)
                last = step.after
            hidden = case.hide(way, raw)
            expect(
                torch.equal(hidden.ids, last.ids),
                f"In {way} the system must hide what the rules hide, and its tokens differ.",
            )


def _check_survival(case: Case, way: Way, step: Applied) -> None:
    before, after, chosen = step.before, step.after, step.chosen
    place = torch.arange(before.shape[1]).expand(before.shape)
    source = _source(case, step)
    came = place if source is None else source
    kept = (came >= 0) & ~chosen.gather(1, came.clamp(min=0))  # B T, places of tokens that were not chosen
    same = after.ids == before.ids.gather(1, came.clamp(min=0))
    if not is_by_units(step.rule):  # the whole text is predicted, and stays as it is
        kept = torch.ones_like(kept)
    expect(
        same[kept].all(),
        f"In {way} a token that is not chosen must stay what it was, and {int((kept & ~same).sum())} changed.",
    )
    found = torch.zeros_like(came).scatter_add(1, came.clamp(min=0), (came >= 0).long())
    expect((found[~chosen] == 1).all(), f"In {way} every token that is not chosen must survive once, and some do not.")
    if source is not None:
        _check_moved(way, step, source)


def _source(case: Case, step: Applied) -> Tensor | None:
    """B T, the place that each token came from; None: every token stays in its place."""
    if not is_by_units(step.rule):
        return None
    units = torch.where(step.chosen, step.rule.units.label(step.before, SEED, step.visit), -1)
    found: Tensor | None = step.rule.replace.apply(step.before, step.chosen, units, case.vocabulary, SEED, step.visit)[
        1
    ]
    return found


def _check_moved(way: Way, step: Applied, source: Tensor) -> None:
    """A unit whose tokens change places has the same tokens as before, and columns follow their tokens."""
    units = torch.where(step.chosen, step.rule.units.label(step.before, SEED, step.visit), -1)
    there, came = source >= 0, source.clamp(min=0)
    same = (step.after.ids == step.before.ids.gather(1, came)) & (units == units.gather(1, came))
    expect(same[there].all(), f"In {way} a token that moves must stay the same token and stay in its unit, and "
           f"{int((there & ~same).sum())} do not.")  # fmt: skip
    for name, column in step.before.columns.items():
        expect(torch.equal(step.after.columns[name][there], column.gather(1, came)[there]), f"In {way} the column {name!r} must follow "
               "the tokens that move, and it does not.")  # fmt: skip


def special(case: Case) -> None:
    """[UNK], the other special tokens and padding are neither hidden nor drawn, wherever they stand in the text."""
    words = case.vocabulary
    for way in ways_by_units(case):
        for raw in batches(case, way, LONG):
            sown = _sown(case, raw)
            never = torch.isin(sown.ids, torch.tensor(words.special)) | ~sown.real
            hidden = case.hide(way, sown)
            touched = never & (predicted(hidden) | (hidden.ids != sown.ids))
            expect(not touched.any(), f"In {way} special tokens, unknown tokens and padding must never be hidden, and "
                   f"{int(touched.sum())} are.")  # fmt: skip
            drawn = hidden.ids[(hidden.ids != sown.ids) & (hidden.ids != words.mask)]
            bad = torch.isin(drawn, torch.tensor(words.special))
            expect(not bad.any(), f"In {way} no special token may be drawn as a replacement, and {int(bad.sum())} are.")


def _sown(case: Case, raw: Batch) -> Batch:
    """The batch with unknown tokens and other special tokens within the text."""
    words, dice = case.vocabulary, torch.rand(raw.shape, generator=torch.Generator().manual_seed(0))
    first = words.special[0] if words.unknown is None else words.unknown
    ids = torch.where(raw.text & (dice < 0.05), first, raw.ids)
    return raw.replace(ids=torch.where(raw.text & (dice > 0.98), words.special[-1], ids))


def units(case: Case) -> None:
    """A unit is hidden whole or not at all; one that is made of parts may be cut between parts, where the budget ends."""
    for way in ways_by_units(case):
        for raw in batches(case, way, LONG):
            for step in applied(case, way, raw):
                labels = step.rule.units.label(step.before, SEED, step.visit)
                parts = step.rule.units.parts(step.before, SEED, step.visit)
                broken = in_part(labels if parts is None else parts, step.chosen)
                expect(broken == 0, f"In {way} a unit must be hidden whole, and {broken} are hidden in part.")
                halves = 1 if raw.reuse is None else 2  # each has a budget of its own
                cut = 0 if parts is None else in_part(_whole_text(case, step, labels), step.chosen)
                expect(cut <= halves * ROWS, f"In {way} at most {halves} units of a row may be cut where the budget ends, and "
                       f"{cut} are cut in {ROWS} rows.")  # fmt: skip


def _whole_text(case: Case, step: Applied, labels: Tensor) -> Tensor:
    """Labels without the units that hold a special token of the text: such a unit loses a part."""
    odd = torch.isin(step.before.ids, torch.tensor(case.vocabulary.special)) & (labels >= 0)
    slot = labels.clamp(min=0)
    holds = torch.zeros_like(labels).scatter_reduce(1, slot, odd.long(), "amax").gather(1, slot) > 0
    return torch.where(holds, -1, labels)


def in_part(labels: Tensor, chosen: Tensor) -> int:
    """How many units (B T, -1 for none) hold both chosen tokens and others."""
    inside, width = labels >= 0, int(labels.max()) + 2
    slot, empty = labels.clamp(min=0), torch.zeros(len(labels), width, dtype=torch.long)
    size = empty.scatter_add(1, slot, inside.long())
    taken = empty.scatter_add(1, slot, (inside & chosen).long())
    return int(((taken > 0) & (taken < size)).sum())


CONTRACTS = (
    Contract("targets", "Targets are the original tokens at their places, predicted within their example.", targets),
    Contract("survival", "Tokens that are not chosen survive; tokens that move stay in their unit.", survival),
    Contract("special tokens", "Special tokens, [UNK] and padding are never hidden nor drawn.", special, hides_units),
    Contract("whole units", "A unit is hidden whole or not at all.", units, hides_units),
)  # fmt: skip
