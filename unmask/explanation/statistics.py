"""Statistics: what a recipe does with prepared data, measured over many rows, beside what it asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unmask import system
from unmask.batch import Vocabulary
from unmask.errors import require
from unmask.explanation import staged
from unmask.explanation.hidden_units import HOWS, Made, Share, levels, make, of_runs, units, views
from unmask.pretraining import Mixture
from unmask.recipe import Recipe

TOKENS = 200_000  # to be measured, special ones too
AT_ONCE = 16_384  # tokens in one batch

Counts = dict[str, Counter[Any]]  # by name, then by what was counted


class Measured(NamedTuple):
    """A number, and what the recipe asks for; None where it does not say."""

    value: float
    asked: float | None


@dataclass(frozen=True)
class Lengths:
    """How long the hidden units are."""

    mean: Measured
    shares: dict[int, Measured]  # of the units, by length


@dataclass(frozen=True)
class Statistics:
    """What was measured. Shares are of 1; what is moved counts neither as hidden nor as a unit."""

    recipe: str
    size: str
    variant: str
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
    predictions: float  # of tokens, as a share of the text
    hidden: Measured  # share of the text, without [UNK], that is hidden where it stands
    moved: Measured  # share of the text, without [UNK], whose order is lost
    units: int
    drawn: str  # what a way to hide is drawn for: token, or span: a run of hidden tokens that touch
    how: dict[str, Measured]  # shares of the hidden tokens, or of the runs
    words: Lengths  # of the units, in words
    pieces: Lengths  # of the units, in tokens
    views: dict[str, Measured]  # shares of the rows
    levels: dict[str, Measured]  # shares of the rows
    answers: dict[str, float]  # shares of the examples that the sentence task asks about
    asked: float  # share of the examples that it asks about
    notes: dict[str, int]  # on how the documents read became examples


def measure(
    recipe: Recipe, data: str | Path, *, stage: int | None = None, tokens: int = TOKENS, seed: int = 0, visit: int = 0
) -> Statistics:
    """Measure rows of prepared data as training would make them; `stage` counts from 1, none is the last."""
    require(visit >= 0, f"visit must be 0 or more, got {visit}")
    number, hide = staged(recipe, stage)
    mixture = Mixture.open([data])
    mixture.check(recipe)
    vocabulary = mixture.tokenizer.vocabulary
    system.check(recipe, vocabulary)
    length, of_step = recipe.schedule[number - 1].length, recipe.schedule[number - 1].rows
    continuous = recipe.arrange.continuous  # type: ignore[attr-defined]  # its text is known to last for a step's streams
    rows = max(1, AT_ONCE // length)
    rows = min(rows, of_step) if continuous else rows
    loader = mixture.loader(recipe, length, seed, None, rows, visit=visit)
    total: Counts = {}
    while sum(total.get("tokens", {}).values()) < tokens:
        made = make(recipe, hide, loader.batch(rows), vocabulary, seed)
        for name, found in _counts(made, vocabulary, by_run=_drawn_for(hide) == "span").items():
            total.setdefault(name, Counter()).update(found)
    return Statistics(
        recipe=recipe.name, size=recipe.size, variant=recipe.variant, stage=number, length=length, data=str(data),
        seed=seed, visit=visit, notes=dict(loader.notes), **_shares(recipe, hide, total, length),
    )  # fmt: skip


def _drawn_for(hide: Any) -> str:
    return str(getattr(hide, "draw", "token"))


def _counts(made: Made, vocabulary: Vocabulary, *, by_run: bool) -> Counts:
    """What is to be counted in a batch."""
    batch, found = made.batch, units(made, vocabulary.mask)
    hidden, sizes = found.moved == 0, found.end - found.start + 1
    how = of_runs(found, batch.shape[1]) if by_run else found.how[found.how != HOWS.index("moved")]
    text, unknown = batch.word >= 0, batch.ids == (-1 if vocabulary.unknown is None else vocabulary.unknown)
    counted = batch.counted > 0
    predicted = 0 if batch.targets is None else int((batch.targets.weight > 0).sum())
    return {
        "rows": Counter(all=len(batch.ids)),
        "tokens": Counter(all=int(batch.real.sum())),
        "text": Counter(all=int(text.sum())),
        "unknown": Counter(all=int((text & unknown).sum())),
        "examples": Counter(all=int((batch.example.amax(1) + 1).sum())),
        "predicted": Counter(all=predicted),
        "hidden": Counter(all=int(sizes[hidden].sum())),
        "moved": Counter(all=int(sizes[~hidden].sum())),
        "units": Counter(all=int(hidden.sum())),
        "how": Counter(how.tolist()),
        "words": Counter(found.words[hidden].tolist()),
        "pieces": Counter(sizes[hidden].tolist()),
        "views": Counter([] if batch.mode is None else batch.mode.tolist()),
        "levels": Counter([] if made.level is None else made.level.tolist()),
        "answers": Counter(batch.label[counted].tolist()),
    }


def _shares(recipe: Recipe, hide: Any, total: Counts, length: int) -> dict[str, Any]:
    """The counts of all batches as shares."""
    rows, tokens, text, unknown, examples, predicted, hidden, moved = (
        total[name]["all"] for name in ("rows", "tokens", "text", "unknown", "examples", "predicted", "hidden", "moved")
    )
    known = max(1, text - unknown)
    names = recipe.arrange.answers if recipe.arrange.classes else ()  # type: ignore[attr-defined]
    answers = total["answers"] if names else Counter()
    law = hide.units.lengths.shares if hasattr(hide, "units") and hasattr(hide.units, "lengths") else None
    in_words = law is not None and "word" in hide.units.columns
    ways = [("mask", hide.mask), ("random", hide.random), ("keep", 1 - hide.mask - hide.random)] if hidden else []
    return {
        "rows": rows,
        "tokens": tokens,
        "text": text,
        "unknown": unknown / text,
        "padding": 1 - tokens / (rows * length),
        "examples": examples / rows,
        "predictions": predicted / text,
        "hidden": Measured(hidden / known, getattr(hide, "budget", None)),
        "moved": Measured(moved / known, hide.shuffle.budget if hasattr(hide, "shuffle") else None),
        "units": total["units"]["all"],
        "drawn": _drawn_for(hide),
        "how": _beside(total["how"], [Share(name, share, "") for name, share in ways]),
        "words": _lengths(total["words"], law if in_words else None),
        "pieces": _lengths(total["pieces"], None if in_words else law),
        "views": _beside(total["views"], views(recipe)),
        "levels": _beside(total["levels"], levels(hide)),
        "answers": {name: answers[label] / max(1, answers.total()) for label, name in enumerate(names)},
        "asked": answers.total() / examples,
    }


def _beside(counts: Counter[int], shares: list[Share]) -> dict[str, Measured]:
    whole = max(1, counts.total())
    return {name: Measured(counts[number] / whole, share) for number, (name, share, _) in enumerate(shares)}


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


def table(statistics: Statistics) -> Iterator[list[str]]:
    """Lines of (what, measured, asked for), to be drawn as a table."""
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
