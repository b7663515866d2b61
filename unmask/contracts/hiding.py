"""Hiding: targets are the original tokens, other tokens do not change, special tokens are never hidden, units stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.axes import rules
from unmask.batch import Batch, Targets
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, ROWS, SEED, Case, StageTrack, hides_units, is_by_units, ways_by_units
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
        """B, the number that the choices depend on: the visit, or with static masking the version of the row."""
        copies = self.rule.copies
        return self.before.visit if copies is None else self.before.visit % copies


def applied(case: Case, way: StageTrack, batch: Batch) -> Iterator[Applied]:
    """Apply the rules of a track, one after the other."""
    batch = way.choices.see.draw(batch, SEED)
    for rule in rules(way.choices.hide):
        after = rule.apply(batch, case.vocabulary, SEED)
        yield Applied(rule, batch, after)
        batch = after


def batches(case: Case, way: StageTrack, length: int = LENGTH) -> Iterator[Batch]:
    """The first rows of the data, at several visits."""
    rows = case.rows(way, ROWS, length)
    return (rows.replace(visit=rows.visit + visit) for visit in range(VISITS))


def targets(case: Case) -> None:
    """Check that targets are the original ids at their places, each place once, predicted from their own example."""
    for way in case.ways:
        for raw in batches(case, way):
            hidden = case.hide(way, raw)
            for name, found in hidden.targets.items():
                _check_targets(raw, found, f"In {way} the targets {name!r}", _distances(name))


def _distances(name: str) -> tuple[int, ...]:
    """The allowed distances from the vector that predicts a target of this name to the target."""
    ahead = name.removeprefix("ahead_")
    return (int(ahead),) if ahead.isdecimal() else (-1,) if name == "previous" else (0, 1)


def _check_targets(raw: Batch, found: Targets, what: str, distances: tuple[int, ...]) -> None:
    where, at = used(found, "where"), used(found, "at")
    expect(len(where) > 0, f"{what} must contain at least one token, but they contain none.")
    wrong = raw.ids.flatten()[where] != used(found, "ids")
    expect(
        not wrong.any(),
        f"{what} must be the original tokens at their places, but {int(wrong.sum())} of {len(where)} are not.",
    )
    expect(len(where.unique()) == len(where), f"{what} must contain each place once, but some places occur twice.")
    expect(set((where - at).unique().tolist()) <= set(distances), f"{what} must be predicted {' or '.join(map(str, distances))} "
           f"places before their tokens, but the distances are {(where - at).unique().tolist()}.")  # fmt: skip
    example = raw.example.flatten() + 1000 * torch.arange(raw.ids.numel()).div(raw.shape[1], rounding_mode="floor")
    expect(
        torch.equal(example[where], example[at]),
        f"{what} must be predicted from a place of their own example, but some are not.",
    )
    start, end = used(found, "start"), used(found, "end")
    expect(
        ((start <= where) & (where <= end)).all(),
        f"{what} must be between the start and the end of their unit, but some are not.",
    )
    expect(
        torch.equal(example[start], example[end]),
        f"{what} must have the start and the end of their unit in one example, but some do not.",
    )


def survival(case: Case) -> None:
    """Check that tokens that are not chosen do not change. A rule that moves tokens returns where each came from."""
    for way in case.ways:
        for raw in batches(case, way):
            last = raw
            for step in applied(case, way, raw):
                _check_survival(case, way, step)
                last = step.after
            hidden = case.hide(way, raw)
            expect(
                torch.equal(hidden.ids, last.ids),
                f"In {way} the system must give the same tokens as the rules, but they differ.",
            )


def _check_survival(case: Case, way: StageTrack, step: Applied) -> None:
    before, after, chosen = step.before, step.after, step.chosen
    place = torch.arange(before.shape[1]).expand(before.shape)
    source = _source(case, step)
    came = place if source is None else source
    kept = (came >= 0) & ~chosen.gather(1, came.clamp(min=0))  # B T, True on tokens that were not chosen
    same = after.ids == before.ids.gather(1, came.clamp(min=0))
    if not is_by_units(step.rule):  # the rule predicts the whole text and replaces nothing
        kept = torch.ones_like(kept)
    expect(
        same[kept].all(),
        f"In {way} a token that is not chosen must stay what it was, but {int((kept & ~same).sum())} changed.",
    )
    found = torch.zeros_like(came).scatter_add(1, came.clamp(min=0), (came >= 0).long())
    expect(
        (found[~chosen] == 1).all(),
        f"In {way} every token that is not chosen must occur exactly once, but some do not.",
    )
    if source is not None:
        _check_moved(way, step, source)


def _source(case: Case, step: Applied) -> Tensor | None:
    """B T, the place that each token came from; None: every token stays where it is."""
    if not is_by_units(step.rule):
        return None
    units = torch.where(step.chosen, step.rule.units.label(step.before, SEED, step.visit), -1)
    found: Tensor | None = step.rule.replace.apply(step.before, step.chosen, units, case.vocabulary, SEED, step.visit)[
        1
    ]
    return found


def _check_moved(way: StageTrack, step: Applied, source: Tensor) -> None:
    """Check that a unit whose tokens moved has the same tokens as before, and that columns moved with their tokens."""
    units = torch.where(step.chosen, step.rule.units.label(step.before, SEED, step.visit), -1)
    there, came = source >= 0, source.clamp(min=0)
    same = (step.after.ids == step.before.ids.gather(1, came)) & (units == units.gather(1, came))
    expect(same[there].all(), f"In {way} a token that moves must stay the same token and stay in its unit, but "
           f"{int((there & ~same).sum())} do not.")  # fmt: skip
    for name, column in step.before.columns.items():
        expect(torch.equal(step.after.columns[name][there], column.gather(1, came)[there]), f"In {way} the column {name!r} must move "
               "with the tokens, but it does not.")  # fmt: skip


def special(case: Case) -> None:
    """Check that [UNK], other special tokens and padding are never hidden and never drawn, even inside the text."""
    words = case.vocabulary
    for way in ways_by_units(case):
        for raw in batches(case, way, LONG):
            mixed = _with_special_tokens(case, raw)
            never = torch.isin(mixed.ids, torch.tensor(words.special)) | ~mixed.real
            hidden = case.hide(way, mixed)
            touched = never & (predicted(hidden) | (hidden.ids != mixed.ids))
            expect(not touched.any(), f"In {way} special tokens, unknown tokens and padding must never be hidden, but "
                   f"{int(touched.sum())} are.")  # fmt: skip
            drawn = hidden.ids[(hidden.ids != mixed.ids) & (hidden.ids != words.mask)]
            bad = torch.isin(drawn, torch.tensor(words.special))
            expect(not bad.any(), f"In {way} no special token may be drawn as a replacement, but {int(bad.sum())} are.")


def _with_special_tokens(case: Case, raw: Batch) -> Batch:
    """The batch with some unknown tokens and other special tokens inside the text."""
    words, dice = case.vocabulary, torch.rand(raw.shape, generator=torch.Generator().manual_seed(0))
    first = words.special[0] if words.unknown is None else words.unknown
    ids = torch.where(raw.text & (dice < 0.05), first, raw.ids)
    return raw.replace(ids=torch.where(raw.text & (dice > 0.98), words.special[-1], ids))


def units(case: Case) -> None:
    """Check that a unit is hidden as a whole or not at all. A unit with parts may be cut between parts, where the budget
    ends."""
    for way in ways_by_units(case):
        for raw in batches(case, way, LONG):
            for step in applied(case, way, raw):
                labels = step.rule.units.label(step.before, SEED, step.visit)
                parts = step.rule.units.parts(step.before, SEED, step.visit)
                broken = in_part(labels if parts is None else parts, step.chosen)
                expect(broken == 0, f"In {way} a unit must be hidden whole, but {broken} are hidden in part.")
                halves = 1 if raw.reuse is None else 2  # each half of a row has its own budget
                cut = 0 if parts is None else in_part(_whole_text(case, step, labels), step.chosen)
                expect(cut <= halves * ROWS, f"In {way} at most {halves} units of a row may be cut where the budget ends, but "
                       f"{cut} are cut in {ROWS} rows.")  # fmt: skip


def _whole_text(case: Case, step: Applied, labels: Tensor) -> Tensor:
    """Labels without the units that contain a special token of the text, because such a unit loses a part."""
    odd = torch.isin(step.before.ids, torch.tensor(case.vocabulary.special)) & (labels >= 0)
    slot = labels.clamp(min=0)
    holds = torch.zeros_like(labels).scatter_reduce(1, slot, odd.long(), "amax").gather(1, slot) > 0
    return torch.where(holds, -1, labels)


def in_part(labels: Tensor, chosen: Tensor) -> int:
    """The number of units that contain both chosen and other tokens. `labels`: B T, -1: no unit."""
    inside, width = labels >= 0, int(labels.max()) + 2
    slot, empty = labels.clamp(min=0), torch.zeros(len(labels), width, dtype=torch.long)
    size = empty.scatter_add(1, slot, inside.long())
    taken = empty.scatter_add(1, slot, (inside & chosen).long())
    return int(((taken > 0) & (taken < size)).sum())


CONTRACTS = (
    Contract("targets", "Targets are the original tokens at their places, predicted within their example.", targets),
    Contract("survival", "Tokens that are not chosen do not change; tokens that move stay in their unit.", survival),
    Contract("special tokens", "Special tokens, [UNK] and padding are never hidden and never drawn.", special, hides_units),
    Contract("whole units", "A unit is hidden as a whole or not at all.", units, hides_units),
)  # fmt: skip
