"""Statistics: measure what a recipe does with many rows of prepared data, and compare it with the recipe's settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unmask import curves, system
from unmask.axes import InPlace, columns_of
from unmask.batch import Batch
from unmask.errors import require
from unmask.explanation import find_stage, find_track
from unmask.explanation.counts import Counts, add, counts
from unmask.explanation.hidden_units import in_place, levels, make, moves
from unmask.explanation.records import to_json
from unmask.pretraining import Mixture
from unmask.pretraining.labelled import with_tasks
from unmask.recipe import MAIN, FullTrack, Recipe, Stage
from unmask.system.tracks import rows_of

TOKENS = 200_000  # tokens to measure, with special tokens
AT_ONCE = 16_384  # tokens in one batch


class Measured(NamedTuple):
    """A measured number, and the number that the recipe sets."""

    value: float  # as measured
    asked: float | None  # as the recipe sets it; None: the recipe does not set it


@dataclass(frozen=True)
class Lengths:
    """The lengths of the hidden units."""

    mean: Measured  # the mean length
    shares: dict[int, Measured]  # for each length, the share of the units


@dataclass(frozen=True)
class Statistics:
    """What was measured. A share is a number from 0 to 1. Tokens that only changed places do not count as hidden."""

    recipe: str  # the name of the recipe
    size: str  # the size of the recipe
    variant: str  # the variant of the recipe
    track: str | None  # the track that was measured; None: all tracks in their proportions
    stage: int  # the stage of the schedule, counted from 1
    length: int  # the length of a row in tokens
    data: str  # the folder of the data
    seed: int  # the seed of all random choices
    visit: int  # the visit of the first row; small data is read again, as in training
    rows: int  # number of rows
    tokens: int  # number of tokens without padding
    text: int  # number of tokens without padding and special tokens
    unknown: float  # share of the text that is [UNK], which no masked recipe hides
    padding: float  # share of all places that are padding
    examples: float  # mean number of examples in a row
    predictions: float  # number of predicted tokens, divided by the tokens of the text
    hidden: Measured  # share of the text, without [UNK], that is hidden in place
    moved: Measured  # share of the text, without [UNK], that only changed places
    units: int  # number of hidden units
    drawn: str  # the way to hide is drawn for each token ("token"), or for each run of hidden tokens ("span")
    how: dict[str, Measured]  # for each way to hide, the share of the hidden tokens, or of the runs
    words: Lengths  # the lengths of the units in words
    pieces: Lengths  # the lengths of the units in tokens
    views: dict[str, Measured]  # for each track, the share of the rows; empty if one track is measured
    levels: dict[str, Measured]  # for each level, the share of the rows
    answers: dict[str, float]  # for each answer of the sentence task, the share of the examples that have an answer
    asked: float  # share of the examples for which the sentence task is computed
    notes: dict[str, int]  # notes about making examples from documents

    def as_json(self) -> dict[str, Any]:
        """The statistics as dicts, lists, strings and numbers."""
        found: dict[str, Any] = to_json(self)
        return found

    def table(self) -> list[list[str]]:
        """The lines of a table: (name, measured value, value that the recipe sets)."""
        return list(_lines(self))


def measure(
    recipe: Recipe, data: str | Path, *, track: str | None = None, stage: int | None = None, tokens: int = TOKENS,
    seed: int = 0, visit: int = 0,
) -> Statistics:  # fmt: skip
    """Measure rows of prepared data, made as in training. `track`: None measures all tracks in their proportions.

    `stage` counts from 1; None is the last stage."""
    require(visit >= 0, "visit must be 0 or more, got {visit}", visit=visit)
    mixture = Mixture.open([data])
    recipe = with_tasks(recipe, mixture.tokenizer)
    number = find_stage(recipe, stage)
    now, done = recipe.schedule[number - 1], sum(before.share for before in recipe.schedule[: number - 1])
    if track is not None:
        find_track(recipe, number, track)  # refuse an unknown one
        now = replace(now, turns={track: 1.0}) if recipe.takes_turns else now
    chosen = {name: found for name, found in recipe.all_tracks(now).items() if track in (None, name)}
    mixture.check(recipe)
    vocabulary = mixture.tokenizer.vocabulary
    system.check_fit(recipe, vocabulary)
    rows = _rows_at_once(recipe, now)
    loader = mixture.loader(recipe, now.length, seed, None, rows, visit=visit, stage=now)
    total: Counts = {}
    while sum(total.get("tokens", {}).values()) < tokens:
        parts = [(name, part) for name, part in _by_track(loader.batch(rows)) if name in chosen]
        require(
            bool(parts),
            (
                "the track {track!r} has none of the {rows} rows of a step: raise schedule.*.rows or the share of "
                "the track"
            ),
            track=track,
            rows=rows,
        )
        for name, part in parts:
            made = make(
                chosen[name],
                part.replace(progress=torch.tensor(done)),
                vocabulary,
                seed,
                system.asked(recipe, chosen[name]),
            )
            add(total, counts(name, chosen[name], made, vocabulary))
    return Statistics(
        recipe=recipe.name, size=recipe.size, variant=recipe.variant, track=track, stage=number, length=now.length,
        data=str(data), seed=seed, visit=visit, notes=dict(sum(loader.notes.values(), Counter())), **_shares(chosen, total, now.length, done),
    )  # fmt: skip


def _rows_at_once(recipe: Recipe, stage: Stage) -> int:
    """The number of rows to read at once.

    Tracks share a step by whole rows, so a whole step is read. Continuing rows need text for each row of a step."""
    if recipe.tracks:
        return stage.rows
    rows = max(1, AT_ONCE // stage.length)
    return min(rows, stage.rows) if recipe.arrange.continuous else rows


def _by_track(batch: Batch) -> Iterator[tuple[str, Batch]]:
    """The rows of each track."""
    begin = 0
    for name, count in batch.tracks or ((MAIN, batch.shape[0]),):
        yield name, rows_of(batch, begin, begin + count)
        begin += count


def _shares(tracks: dict[str, FullTrack], total: Counts, length: int, done: float) -> dict[str, Any]:
    """Turn the counts of all batches into shares."""
    rows, tokens, text, unknown, examples, predicted, hidden, moved = (
        total[name]["all"] for name in ("rows", "tokens", "text", "unknown", "examples", "predicted", "hidden", "moved")
    )
    known, whole = max(1, text - unknown), sum(track.share for track in tracks.values())
    ruled = [(track.share / whole, rule) for track in tracks.values() for rule in in_place(track)]
    budgets = [(share * curves.at(rule.budget, done), rule) for share, rule in ruled]
    covering = [(budget, rule) for budget, rule in budgets if not moves(rule)]
    law, in_words = _law([rule for _, rule in covering])
    names = dict.fromkeys(name for track in tracks.values() if track.share for name in track.arrange.answers)
    return {
        "rows": rows,
        "tokens": tokens,
        "text": text,
        "unknown": unknown / text,
        "padding": 1 - tokens / (rows * length),
        "examples": examples / rows,
        "predictions": predicted / text,
        "hidden": Measured(hidden / known, _sum(budget for budget, _ in covering)),
        "moved": Measured(moved / known, _sum(budget for budget, rule in budgets if moves(rule))),
        "units": total["units"]["all"],
        "drawn": next((rule.replace.draw for _, rule in covering), "token"),
        "how": _compared(
            total["how"],
            [(budget, {str(way): share for way, share in rule.replace.shares.items()}) for budget, rule in covering],
        ),
        "words": _lengths(total["words"], law if in_words else None),
        "pieces": _lengths(total["pieces"], None if in_words else law),
        "views": _compared(total["views"], [(1.0, {n: t.share for n, t in tracks.items()})] if len(tracks) > 1 else []),
        "levels": _compared(
            total["levels"],
            [(track.share, {level.name: level.share for level in levels(track)}) for track in tracks.values()],
        ),
        "answers": {name: total["answers"][name] / max(1, total["answers"].total()) for name in names},
        "asked": total["answers"].total() / examples if names else 0.0,
    }


def _sum(budgets: Iterable[float]) -> float | None:
    """The sum of the budgets; None if there are none."""
    found = list(budgets)
    return sum(found) if found else None


def _law(rules: list[InPlace]) -> tuple[tuple[float, ...] | None, bool]:
    """The distribution of unit lengths that all rules set, and whether it counts words; None if the rules differ."""
    laws = {(rule.units.law, "word" in columns_of(rule.units)) for rule in rules}
    return laws.pop() if len(laws) == 1 else (None, False)


def _compared(counts: Counter[str], asked: list[tuple[float, dict[str, float]]]) -> dict[str, Measured]:
    """For each name, the measured share and the weighted mean of the shares that are set."""
    whole = max(1, counts.total())
    asked = [(weight, shares) for weight, shares in asked if shares]
    weights = sum(weight for weight, _ in asked)
    names = dict.fromkeys(name for _, shares in asked for name in shares)
    means = {name: sum(weight * shares.get(name, 0.0) for weight, shares in asked) / weights for name in names}
    return {name: Measured(counts[name] / whole, mean) for name, mean in means.items()}


def _lengths(counts: Counter[int], law: tuple[float, ...] | None) -> Lengths:
    whole, longest = max(1, counts.total()), max([*counts, len(law or ())], default=0)
    asked = dict(enumerate(law, 1)) if law else {}
    return Lengths(
        mean=Measured(
            sum(length * count for length, count in counts.items()) / whole,
            sum(length * share for length, share in asked.items()) if law else None,
        ),
        shares={n: Measured(counts[n] / whole, asked.get(n, 0.0) if law else None) for n in range(1, longest + 1)},
    )


def _lines(statistics: Statistics) -> Iterator[list[str]]:
    yield ["rows", f"{statistics.rows:,} of {statistics.length} tokens", ""]
    yield ["examples in a row", f"{statistics.examples:.2f}", ""]
    yield ["padding", f"{statistics.padding:.2%}", ""]
    yield ["predictions, of the text's tokens", f"{statistics.predictions:.2%}", ""]
    if statistics.unknown:
        yield ["[UNK], of the text's tokens", f"{statistics.unknown:.2%}", ""]
    known = "text's tokens" if not statistics.unknown else "other tokens"
    if statistics.units:
        yield _line(f"hidden, of the {known}", statistics.hidden)
    if statistics.moved.asked:
        yield _line("put in another order", statistics.moved)
    for title, shares in (
        ("hidden tokens: " if statistics.drawn == "token" else "runs of hidden tokens: ", statistics.how),
        ("rows of view ", statistics.views),
        ("rows of level ", statistics.levels),
    ):
        for name, measured in shares.items():
            yield _line(title + name, measured)
    for name, lengths in (("word", statistics.words), ("token", statistics.pieces)) if statistics.units else ():
        yield _line(f"{name}s in a unit, on average", lengths.mean, "{:.2f}")
        for length, measured in lengths.shares.items() if len(lengths.shares) > 1 else ():
            yield _line(f"units of {length} {name}{'s' * (length > 1)}", measured)
    for name, share in statistics.answers.items():
        yield [f"sentence task: {name}", f"{share:.2%}", ""]
    if statistics.answers:
        yield ["sentence task asked, of examples", f"{statistics.asked:.2%}", ""]


def _line(name: str, measured: Measured, form: str = "{:.2%}") -> list[str]:
    return [name, form.format(measured.value), "" if measured.asked is None else form.format(measured.asked)]
