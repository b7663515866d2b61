"""Hiding: targets are the original tokens, other tokens do not change, special tokens are never hidden, units stay whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.axes import COLUMN_OF_TARGETS, gives_of, rules
from unmask.batch import Batch, Targets
from unmask.contracts.broken import expect
from unmask.contracts.case import LENGTH, ROWS, SEED, Case, StageTrack, hides_units, is_by_units
from unmask.contracts.contract import Contract
from unmask.contracts.rows import predicted, used
from unmask.hide.source import Source

VISITS = 3
LONG = 3 * LENGTH  # enough tokens for several units


@dataclass(frozen=True)
class Applied:
    """One rule, and the batch before and after it."""

    rule: Any
    before: Batch
    after: Batch
    chosen: Tensor  # B T, True on the tokens that this rule hides
    source: Source | None  # where each token came from; None: every token stays where it is

    @property
    def visit(self) -> Tensor:
        """B, the number that the choices depend on: the visit, or with static masking the version of the row."""
        copies = self.rule.copies
        return self.before.visit if copies is None else self.before.visit % copies

    @property
    def place(self) -> Tensor:
        """B T, the place that each token came from; -1: it is new."""
        here = torch.arange(self.before.shape[1], device=self.before.ids.device).expand(self.before.shape)
        return here if self.source is None else self.source.place


def apply(case: Case, rule: Any, before: Batch) -> Applied:
    """Apply one rule."""
    after = rule.apply(before, case.vocabulary, SEED)
    return Applied(
        rule, before, after, hidden_by(case, rule, before, after), rule.source(before, case.vocabulary, SEED)
    )


def hidden_by(case: Case, rule: Any, before: Batch, after: Batch) -> Tensor:
    """B T, True on the tokens that a rule hides in the text: its targets; if it has none, the tokens that it names."""
    named: Tensor | None = rule.chosen(before, case.vocabulary, SEED)
    if named is None:
        return torch.zeros_like(before.real)
    return predicted(after) & ~predicted(before) if after.targets else named


def applied(case: Case, way: StageTrack, batch: Batch) -> Iterator[Applied]:
    """Apply the rules of a track, one after the other."""
    batch = way.choices.see.draw(batch, SEED)
    for rule in rules(way.choices.hide):
        step = apply(case, rule, batch)
        yield step
        batch = step.after


def by_units(case: Case, way: StageTrack, batch: Batch) -> Iterator[Applied]:
    """The same, only the rules that choose units up to a budget."""
    return (step for step in applied(case, way, batch) if is_by_units(step.rule))


def batches(case: Case, way: StageTrack, length: int = LENGTH) -> Iterator[Batch]:
    """The first rows of the data, at several visits."""
    rows = case.rows(way, ROWS, length)
    return (rows.replace(visit=rows.visit + visit) for visit in range(VISITS))


def targets(case: Case) -> None:
    """Check that targets are the original ids at their places, each place once, predicted from their own example."""
    for way in case.ways:
        for raw in batches(case, way):
            hidden = case.hide(way, raw)
            for name, found in (hidden.decoder or hidden).targets.items():
                what = f"In {way} the targets {name!r}"
                answers = raw.columns[COLUMN_OF_TARGETS[name]] if name in COLUMN_OF_TARGETS else raw.ids
                _check_targets(raw, answers, found, what)
                if hidden.decoder is None:
                    _check_places(raw, found, what, _distances(name))
                else:
                    second = "second text" in gives_of(way.choices.hide)
                    _check_decoder(raw, hidden.decoder, found, what, second=second)


def _distances(name: str) -> tuple[int, ...]:
    """The allowed distances from the vector that predicts a target of this name to the target."""
    ahead = name.removeprefix("ahead_")
    return (int(ahead),) if ahead.isdecimal() else (-1,) if name == "previous" else (0, 1)


def _check_targets(raw: Batch, answers: Tensor, found: Targets, what: str) -> None:
    where = used(found, "where")
    kind = "tokens" if answers is raw.ids else "entries of their column"
    expect(len(where) > 0, f"{what} must contain at least one token, but they contain none.")
    wrong = answers.flatten()[where] != used(found, "ids")
    expect(
        not wrong.any(),
        f"{what} must be the original {kind} at their places, but {int(wrong.sum())} of {len(where)} are not.",
    )
    expect(len(where.unique()) == len(where), f"{what} must contain each place once, but some places occur twice.")


def _check_places(raw: Batch, found: Targets, what: str, distances: tuple[int, ...]) -> None:
    where, at = used(found, "where"), used(found, "at")
    expect(set((where - at).unique().tolist()) <= set(distances), f"{what} must be predicted {' or '.join(map(str, distances))} "
           f"places before their tokens, but the distances are {(where - at).unique().tolist()}.")  # fmt: skip
    example = _examples(raw)
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


def _check_decoder(raw: Batch, decoder: Batch, found: Targets, what: str, *, second: bool) -> None:
    """Check that the decoder predicts each token in the token's own example and at its position in the text. `second`: at
    its position in the second text."""
    where, at = used(found, "where"), used(found, "at")
    expect(
        torch.equal(_examples(raw)[where], _examples(decoder)[at]),
        f"{what} must be predicted in their own example of the decoder rows, but some are not.",
    )
    position, slot = raw.position.flatten()[where], raw.example.clamp(min=0).flatten()[where]
    if second:
        slot = slot + where // raw.shape[1] * raw.shape[1]  # different in all rows
        begins = torch.full_like(raw.ids.flatten(), raw.shape[1]).scatter_reduce(0, slot, position, "amin")
        position = position - begins[slot]
    expect(
        torch.equal(position, decoder.position.flatten()[at]),
        f"{what} must be predicted at their own position of the decoder rows, but some are not.",
    )


def _examples(batch: Batch) -> Tensor:
    """The number of each token's example, different in all rows; flat."""
    row = torch.arange(batch.ids.numel()).div(batch.shape[1], rounding_mode="floor")
    return batch.example.flatten() + 1000 * row


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
    before, after, chosen, came = step.before, step.after, step.chosen, step.place
    kept = (came >= 0) & ~chosen.gather(1, came.clamp(min=0))  # B T, True on tokens that were not chosen
    same = after.ids == before.ids.gather(1, came.clamp(min=0))
    expect(
        same[kept].all(),
        f"In {way} a token that is not chosen must stay what it was, but {int((kept & ~same).sum())} changed.",
    )
    found = torch.zeros_like(before.ids).scatter_add(1, came.clamp(min=0), (came >= 0).long())
    expect(
        (found[~chosen & before.real] == 1).all(),
        f"In {way} every token that is not chosen must occur exactly once, but some do not.",
    )
    if step.source is not None:
        _check_moved(way, step)


def _check_moved(way: StageTrack, step: Applied) -> None:
    """Check that tokens that moved are the same tokens, in their example, and that columns moved with them. Unless the row
    becomes shorter, chosen tokens must stay in their units."""
    there, came = (step.place >= 0) & step.after.real, step.place.clamp(min=0)
    same = (step.after.ids == step.before.ids.gather(1, came)) & (
        step.after.example == step.before.example.gather(1, came)
    )
    if is_by_units(step.rule) and step.rule.replace.keeps_places:
        units = torch.where(step.chosen, step.rule.units.label(step.before, SEED, step.visit), -1)
        same = same & (units == units.gather(1, came))
    expect(same[there].all(), f"In {way} a token that moves must stay the same token and stay in its unit and its example, but "
           f"{int((there & ~same).sum())} do not.")  # fmt: skip
    for name, column in step.before.columns.items():
        expect(torch.equal(step.after.columns[name][there], column.gather(1, came)[there]), f"In {way} the column {name!r} must move "
               "with the tokens, but it does not.")  # fmt: skip
    summary = (flat.ids.flatten()[flat.summary[flat.counted > 0]] for flat in (step.before, step.after))
    expect(
        torch.equal(*summary), f"In {way} the summary token of an example must move with its tokens, but it does not."
    )


def special(case: Case) -> None:
    """Check that [UNK], other special tokens and padding are never hidden and never drawn, even inside the text."""
    words = case.vocabulary
    for way in case.ways:
        for raw in batches(case, way, LONG):
            for step in by_units(case, way, _with_special_tokens(case, raw)):
                never = torch.isin(step.before.ids, torch.tensor(words.special)) | ~step.before.real
                gone = torch.zeros_like(never) if step.source is not None else step.after.ids != step.before.ids
                touched = never & (step.chosen | gone)
                expect(not touched.any(), f"In {way} special tokens, unknown tokens and padding must never be hidden, but "
                       f"{int(touched.sum())} are.")  # fmt: skip
                _check_survival(case, way, step)
                new = step.after.real & (
                    (step.place < 0) | (step.after.ids != step.before.ids.gather(1, step.place.clamp(min=0)))
                )
                drawn = step.after.ids[new & (step.after.ids != words.mask)]
                bad = torch.isin(drawn, torch.tensor(words.special))
                expect(
                    not bad.any(), f"In {way} no special token may be drawn as a replacement, but {int(bad.sum())} are."
                )


def _with_special_tokens(case: Case, raw: Batch) -> Batch:
    """The batch with some unknown tokens and other special tokens inside the text."""
    words, dice = case.vocabulary, torch.rand(raw.shape, generator=torch.Generator().manual_seed(0))
    first = words.special[0] if words.unknown is None else words.unknown
    ids = torch.where(raw.text & (dice < 0.05), first, raw.ids)
    return raw.replace(ids=torch.where(raw.text & (dice > 0.98), words.special[-1], ids))


def units(case: Case) -> None:
    """Check that a unit is hidden as a whole or not at all. A unit with parts may be cut between parts, where the budget
    ends."""
    for way in case.ways:
        for raw in batches(case, way, LONG):
            for step in by_units(case, way, raw):
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
