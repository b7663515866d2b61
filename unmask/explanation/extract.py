"""The records of an explanation, read off a recipe and off the batch of one row that its parts made."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from unmask import curves, see, system
from unmask.batch import Batch, Targets
from unmask.explanation.hidden_units import HOWS, Made, levels, units, views
from unmask.explanation.records import Answer, Choice, Drawn, Found, ObjectiveAsked, Target, Token, Unit
from unmask.predict import AllTokens, EveryLayer, Label, SpanBoundary, Tokens, span_boundary
from unmask.recipe import Recipe, Stage
from unmask.text import Tokenizer
from unmask.text.lexicon import LEVELS

_SHAPE = ("layers", "width", "heads", "feedforward")  # of a backbone: told even where they are the usual ones


def choices(recipe: Recipe, stage: Stage, hide: Any) -> Iterator[Choice]:
    """What the recipe chose, an axis each."""
    for axis, part in {"arrange": recipe.arrange, "hide": hide, "see": recipe.see}.items():
        yield Choice(axis, in_words(part), _meaning(part))
    for by, name, part in objectives(recipe):
        meaning = _meaning(part)
        told = meaning if by == "network" else f"The {by}: {meaning[:1].lower()}{meaning[1:]}"
        answers = f" Here: {', '.join(recipe.arrange.answers)}." if name == system.SENTENCE else ""  # type: ignore[attr-defined]
        yield Choice(f"predict {name}", in_words(part), told + answers)
    for name, weight in stage.weights.items():
        if dataclasses.is_dataclass(weight):
            yield Choice(f"weight {name}", in_words(weight), _meaning(weight))
    for field in dataclasses.fields(recipe.system):
        part = getattr(recipe.system, field.name)
        if hasattr(part, "layers"):
            yield Choice(field.name, in_words(part, all_values=False), _meaning(part))


def objectives(recipe: Recipe) -> Iterator[tuple[str, str, Any]]:
    """(who, name, part) of everything that is predicted."""
    pair = isinstance(recipe.system, system.GeneratorDiscriminator)
    if isinstance(recipe.system, system.GeneratorDiscriminator):
        yield "generator", recipe.system.losses[0], recipe.system.fill
    for name, part in system.questions(recipe).items():
        yield "discriminator" if pair else "network", name, part


def in_words(value: Any, *, all_values: bool = True) -> str:
    """A part in words: its name and its values. A part whose budget is 0 does nothing and is left out."""
    if dataclasses.is_dataclass(value):
        fields = [f for f in dataclasses.fields(value) if getattr(getattr(value, f.name), "budget", 1)]
        told = [f.name for f in fields if all_values or f.name in _SHAPE or getattr(value, f.name) != f.default]
        values = [f"{name} {in_words(getattr(value, name))}" for name in told]
        return type(value).__name__ + (f" ({', '.join(values)})" if values else "")
    if isinstance(value, tuple):
        return " ".join(map(in_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _meaning(part: Any) -> str:
    return (inspect.getdoc(part) or "").split("\n")[0].replace("`", "")


def drawn(recipe: Recipe, hide: Any, made: Made) -> Iterator[Drawn]:
    """The view and the level of the row, where there are several."""
    for axis, shares, number in (("view", views(recipe), made.batch.mode), ("level", levels(hide), made.level)):
        if shares and number is not None:
            yield Drawn(axis, *shares[int(number[0])])


def found(batch: Batch) -> Iterator[Found]:
    """What of the lexicon stands in the row."""
    for level in LEVELS:
        column = getattr(batch, level)
        for number in range(0 if column is None else int(column.max()) + 1):
            places = torch.nonzero(column[0] == number)[:, 0].tolist()
            yield Found(level, places[0], places[-1])


def hidden_units(made: Made, tokenizer: Tokenizer, known: Sequence[Found], row: Sequence[Drawn]) -> Iterator[Unit]:
    """In a batch of one row a flat index is a place."""
    level = next((drawn.name for drawn in row if drawn.axis == "level"), "")
    hidden_as = LEVELS[: LEVELS.index(level) + 1] if level in LEVELS else ()
    names = {(start, end): level for level, start, end in known if level in hidden_as}
    found = units(made, tokenizer.vocabulary.mask)
    for start, end, words in zip(found.start.tolist(), found.end.tolist(), found.words.tolist(), strict=True):
        ways = {HOWS[how] for how in found.how[(found.places >= start) & (found.places <= end)]}
        yield Unit(start, end, ways.pop() if len(ways) == 1 else "mixed", words, names.get((start, end), ""))


def targets(recipe: Recipe, stage: Stage, batch: Batch, tokenizer: Tokenizer) -> Iterator[Target]:
    """What is predicted token by token."""
    if batch.targets is None:
        return
    parts = [part for _, name, part in objectives(recipe) if stage.weights.get(name, 1.0)]
    from_around = any(isinstance(part, SpanBoundary) for part in parts)
    asked = {_ahead(part) for part in parts}
    further = [_by_place(more) for ahead, more in enumerate(batch.further, 2) if ahead in asked]
    blind = system.second_stream(recipe)
    sees = (see.visible_before(batch) if blind else see.visible(batch))[0].sum(1).tolist()
    found = batch.targets
    stored = (*span_boundary.around(batch), found.where, found.ids, found.start, found.end, found.weight)
    columns = (column.tolist() for column in stored)
    for left, right, between, place, i, start, end, weight in zip(*columns, strict=True):
        if weight:
            around = (left, right) if from_around and between else None
            more = tuple(_spell(tokenizer, after[place]) for after in further if place in after)
            yield Target(place, _spell(tokenizer, i), (start, end), around, sees[place], blind, more)


def questions(recipe: Recipe, stage: Stage, batch: Batch, done: float) -> Iterator[ObjectiveAsked]:
    """Every objective and the places where it is asked, when this share of all steps is behind us."""
    everywhere = torch.nonzero(batch.real[0])[:, 0].tolist()
    summaries = batch.summary[batch.counted > 0].tolist()
    for by, name, part in objectives(recipe):
        at_all = isinstance(part, AllTokens) or getattr(part, "where", "") == "all"
        there = batch.targets if _ahead(part) == 1 else batch.further[_ahead(part) - 2]
        hidden = list(_by_place(there)) if there is not None else []
        places = summaries if isinstance(part, Label) else everywhere if at_all else hidden
        weight: Any = stage.weights.get(name, 1.0)
        yield ObjectiveAsked(name, by, tuple(places), curves.at(weight, done), _meaning(part))


def _ahead(part: Any) -> int:
    """Which targets an objective predicts."""
    head = part.head if isinstance(part, EveryLayer) else part
    return head.ahead if isinstance(head, Tokens) else 1


def _by_place(targets: Targets) -> dict[int, int]:
    """The id to be predicted at each place that counts."""
    used = targets.weight > 0
    return dict(zip(targets.where[used].tolist(), targets.ids[used].tolist(), strict=True))


def answers(recipe: Recipe, batch: Batch) -> Iterator[Answer]:
    """The classes of the examples, where the sentence task counts."""
    if not recipe.arrange.classes:  # type: ignore[attr-defined]
        return
    for place, label, counted in zip(batch.summary.tolist(), batch.label.tolist(), batch.counted.tolist(), strict=True):
        if counted:
            yield Answer(place, label, recipe.arrange.answers[label])  # type: ignore[attr-defined]


def tokens(made: Made, tokenizer: Tokenizer, hidden: Sequence[Unit], predicted: Sequence[Target]) -> Iterator[Token]:
    """The tokens of the row, without its padding."""
    batch = made.batch
    unit = {place: number for number, (start, end, *_) in enumerate(hidden) for place in range(start, end + 1)}
    stood = {target.place: target.text for target in predicted if target.place in unit}
    found = units(made, tokenizer.vocabulary.mask)
    ways = {place: HOWS[how] for place, how in zip(found.places.tolist(), found.how.tolist(), strict=True)}
    assert batch.rank is not None
    columns = (
        batch.ids, batch.word, batch.sentence, made.half, batch.segment, batch.position, batch.rank, batch.example,
    )  # fmt: skip
    for place, values in enumerate(zip(*(column[0][batch.real[0]].tolist() for column in columns), strict=True)):
        i, word, sentence, half, segment, position, rank, example = values
        text = _spell(tokenizer, i)
        yield Token(
            text=text, original=stood.get(place, text), word=word, sentence=sentence, half=half, segment=segment,
            position=position, special=word < 0, hidden=ways.get(place),
            unit=unit.get(place, -1), rank=rank, example=example,
        )  # fmt: skip


def _spell(tokenizer: Tokenizer, i: int) -> str:
    """A token as a person would write it; a part of a character as the vocabulary writes it."""
    text = tokenizer.readable(i)
    return text if "\ufffd" not in text else tokenizer.token(i)
