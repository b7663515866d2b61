"""Statistics: what a recipe does with many rows of prepared data, next to what it asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unmask import curves, system
from unmask.axes import InPlace, columns_of
from unmask.batch import Batch
from unmask.errors import require
from unmask.explanation import find_stage, find_track
from unmask.explanation.counts import Counts, add, counts
from unmask.explanation.hidden_units import in_place, levels, make, moves
from unmask.explanation.records import to_json
from unmask.pretraining import Mixture
from unmask.recipe import MAIN, FullTrack, Recipe, Stage
from unmask.system.tracks import rows_of

TOKENS = 200_000  # to measure, special tokens included
AT_ONCE = 16_384  # tokens in one batch


class Measured(NamedTuple):
    """A number, and what the recipe asks for; None if it does not say."""

    value: float
    asked: float | None


@dataclass(frozen=True)
class Lengths:
    """How long the hidden units are."""

    mean: Measured
    shares: dict[int, Measured]  # of the units, by length


@dataclass(frozen=True)
class Statistics:
    """What was measured. Shares are of 1. Tokens that only changed places count neither as hidden nor as a unit."""

    recipe: str
    size: str
    variant: str
    track: str | None  # None: all tracks in their proportions
    stage: int  # of the schedule, counted from 1
    length: int  # of a row
    data: str
    seed: int
    visit: int  # of the first row; small data is read again, as in training
    rows: int
    tokens: int  # without padding
    text: int  # tokens without special ones
    unknown: float  # share of the text that is [UNK], which no masked recipe hides
    padding: float  # share of all places
    examples: float  # in a row, on average
    predictions: float  # predicted tokens, as a share of the text
    hidden: Measured  # share of the text, without [UNK], that is hidden where it stands
    moved: Measured  # share of the text, without [UNK], that only changed places
    units: int
    drawn: str  # what shares one draw of a way to hide: token, or span: a run of neighbouring hidden tokens
    how: dict[str, Measured]  # shares of the hidden tokens, or of the runs
    words: Lengths  # of the units, in words
    pieces: Lengths  # of the units, in tokens
    views: dict[str, Measured]  # shares of the rows, by track; empty if one track is measured
    levels: dict[str, Measured]  # shares of the rows
    answers: dict[str, float]  # shares of the examples that the sentence task asks about
    asked: float  # share of the examples that it asks about
    notes: dict[str, int]  # on how the documents became examples

    def as_json(self) -> dict[str, Any]:
        """As dicts, lists, strings and numbers."""
        found: dict[str, Any] = to_json(self)
        return found

    def table(self) -> list[list[str]]:
        """Lines of (what, measured, asked for), for a table."""
        return list(_lines(self))


def measure(
    recipe: Recipe, data: str | Path, *, track: str | None = None, stage: int | None = None, tokens: int = TOKENS,
    seed: int = 0, visit: int = 0,
) -> Statistics:  # fmt: skip
    """Measure rows of prepared data as training makes them. `track`: None for all in their proportions. `stage` counts from
    1, None is the last."""
    require(visit >= 0, f"visit must be 0 or more, got {visit}")
    number = find_stage(recipe, stage)
    now, done = recipe.schedule[number - 1], sum(before.share for before in recipe.schedule[: number - 1])
    chosen = recipe.all_tracks(now) if track is None else {track: find_track(recipe, number, track)}
    mixture = Mixture.open([data])
    mixture.check(recipe)
    vocabulary = mixture.tokenizer.vocabulary
    system.check_fit(recipe, vocabulary)
    rows = _rows_at_once(recipe, now)
    loader = mixture.loader(recipe, now.length, seed, None, rows, visit=visit)
    total: Counts = {}
    while sum(total.get("tokens", {}).values()) < tokens:
        parts = [(name, part) for name, part in _by_track(loader.batch(rows)) if name in chosen]
        require(
            bool(parts),
            f"the track {track!r} has none of the {rows} rows of a step: raise schedule.*.rows or its share",
        )
        for name, part in parts:
            made = make(chosen[name], part, vocabulary, seed, system.asked(recipe, chosen[name]))
            add(total, counts(name, chosen[name], made, vocabulary))
    return Statistics(
        recipe=recipe.name, size=recipe.size, variant=recipe.variant, track=track, stage=number, length=now.length,
        data=str(data), seed=seed, visit=visit, notes=dict(loader.notes), **_shares(chosen, total, now.length, done),
    )  # fmt: skip


def _rows_at_once(recipe: Recipe, stage: Stage) -> int:
    """Tracks share a step by whole rows, so a whole step is measured. Continuing rows need text for each row of a step."""
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
    """The counts of all batches as shares."""
    rows, tokens, text, unknown, examples, predicted, hidden, moved = (
        total[name]["all"] for name in ("rows", "tokens", "text", "unknown", "examples", "predicted", "hidden", "moved")
    )
    known, whole = max(1, text - unknown), sum(track.share for track in tracks.values())
    ruled = [(track.share / whole, rule) for track in tracks.values() for rule in in_place(track)]
    budgets = [(share * curves.at(rule.budget, done), rule) for share, rule in ruled]
    covering = [(budget, rule) for budget, rule in budgets if not moves(rule)]
    law, in_words = _law([rule for _, rule in covering])
    names = next((track.arrange.answers for track in tracks.values() if track.arrange.classes), ())
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
    """All budgets together; None if there are none."""
    found = list(budgets)
    return sum(found) if found else None


def _law(rules: list[InPlace]) -> tuple[tuple[float, ...] | None, bool]:
    """The law of lengths that all rules ask for, and whether it counts words; None if they do not agree."""
    laws = {(rule.units.law, "word" in columns_of(rule.units)) for rule in rules}
    return laws.pop() if len(laws) == 1 else (None, False)


def _compared(counts: Counter[str], asked: list[tuple[float, dict[str, float]]]) -> dict[str, Measured]:
    """The share of each name, and the mean of what is asked for, each with its weight."""
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
