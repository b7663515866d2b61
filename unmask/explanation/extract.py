"""Make the records of an explanation from a recipe and from the batch of one row that its parts made."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from unmask import curves, see, system
from unmask.axes import Objective, Way, columns_of, gives_of, parts_in, rules
from unmask.batch import Batch, Targets
from unmask.explanation.hidden_units import WAYS, Made, Step, levels, units
from unmask.explanation.records import Answer, Choice, Drawn, Found, ObjectiveAsked, Tagged, Target, Token, Unit, shown
from unmask.recipe import FullTrack, Recipe, Stage
from unmask.text import Tokenizer
from unmask.text.lexicon import LEVELS

TARGETS = "targets:"  # before the name of targets, in the facts of parts
TWO_HALVES = "two halves"  # a fact: each half of a vector sees one direction
_SHAPE = ("layers", "width", "heads", "feedforward")  # fields of a backbone that are shown even with default values


def choices(recipe: Recipe, track: FullTrack, stage: Stage) -> Iterator[Choice]:
    """The choices of the recipe, one entry per axis."""
    yield Choice("arrange", in_words(track.arrange), _meaning(track.arrange))
    hides = rules(track.hide)
    for number, rule in enumerate(hides, 1):
        instead = f" In their place: {_small(_meaning(rule.in_place.replace))}" if rule.in_place else ""
        yield Choice("hide" if len(hides) == 1 else f"hide {number}", in_words(rule), _meaning(rule) + instead)
    yield Choice("see", in_words(track.see), _meaning(track.see))
    for by, name, part in objectives(recipe, track):
        meaning = _meaning(part)
        said = meaning if by == "network" else f"The {by}: {_small(meaning)}"
        named = track.arrange.answers if name == track.sentence else ()
        answers = f" Here: {', '.join(named)}." if named else ""
        yield Choice(f"predict {name}", in_words(part), said + answers)
    for name, weight in stage.weights.items():
        if dataclasses.is_dataclass(weight):
            yield Choice(f"weight {name}", in_words(weight), _meaning(weight))
    own = dict(parts_in(recipe.system))
    for name, network in recipe.system.networks.items():
        yield Choice(name, in_words(own.get(name, network), all_values=False), _meaning(network))


def objectives(recipe: Recipe, track: FullTrack) -> Iterator[tuple[str, str, Objective]]:
    """Yields (network, name, part) for every objective of a track."""
    for network, parts in recipe.system.asks(system.chosen(recipe, track)).items():
        for name, part in parts.items():
            yield network, name, part


def in_words(value: Any, *, all_values: bool = True) -> str:
    """A part as text: its name and its values."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        shown = [f.name for f in fields if all_values or f.name in _SHAPE or getattr(value, f.name) != f.default]
        values = [f"{name} {in_words(getattr(value, name))}" for name in shown]
        return type(value).__name__ + (f" ({', '.join(values)})" if values else "")
    if isinstance(value, tuple):
        return " ".join(map(in_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _meaning(part: Any) -> str:
    return (inspect.getdoc(part) or "").split("\n")[0].replace("`", "")


def _small(sentence: str) -> str:
    """The sentence with a small first letter, so that it can follow a colon."""
    return sentence[:1].lower() + sentence[1:]


def drawn(recipe: Recipe, name: str, track: FullTrack, made: Made) -> Iterator[Drawn]:
    """The track and the level of the row, if the recipe has several tracks or levels."""
    if recipe.tracks:
        of = "steps of this stage" if recipe.takes_turns else "rows"
        yield Drawn("track", name, track.share, _meaning(track.see), of)
    for level in levels(track):
        if level.name in made.level:
            yield Drawn("level", *level)


def found(batch: Batch) -> Iterator[Found]:
    """The entries of the lexicon that occur in the row."""
    for level in LEVELS:
        column = batch.columns.get(level, torch.full_like(batch.ids, -1))
        for number in range(int(column.max()) + 1):
            places = torch.nonzero(column[0] == number)[:, 0].tolist()
            yield Found(level, places[0], places[-1])


def hidden_units(made: Made, known: Sequence[Found]) -> Iterator[Unit]:
    """The hidden units of the row. In a batch of one row, a flat index is a place in the row.

    If tokens are removed, each new token stands for a unit."""
    if made.moves:
        yield from _new_units(made)
        return
    level = made.level[0] if made.level else ""
    hidden_as = LEVELS[: LEVELS.index(level) + 1] if level in LEVELS else ()
    names = {(start, end): level for level, start, end in known if level in hidden_as}
    found = units(made)
    for start, end, words in zip(found.start.tolist(), found.end.tolist(), found.words.tolist(), strict=True):
        ways = {WAYS[how] for how in found.how[(found.places >= start) & (found.places <= end)]}
        yield Unit(start, end, ways.pop() if len(ways) == 1 else "mixed", words, names.get((start, end), ""))


def _new_units(made: Made) -> Iterator[Unit]:
    """One unit for each new token of the row."""
    for place in torch.nonzero(made.batch.real[0])[:, 0].tolist():
        step, came = _came(made, place)
        if step is not None:
            hidden = step.hidden
            words = 0 if hidden is None else int(hidden.words[hidden.start == came].max(initial=0))
            yield Unit(place, place, _new_way(made, place), words, "")


def _came(made: Made, place: int) -> tuple[Step | None, int]:
    """Where the token at a place of the row came from: its place in the text (None), or the rule that put it there, and the
    place of the first token that the rule replaced by it."""
    for step in reversed(made.steps):
        if step.source is None:
            continue
        came = int(step.source.place[0, place])
        if came < 0:
            return step, int(step.source.like[0, place])
        place = came
    return None, place


def _new_way(made: Made, place: int) -> Way:
    return "mask" if int(made.batch.ids[0, place]) == made.mask else "random"


def targets(
    recipe: Recipe, track: FullTrack, stage: Stage, batch: Batch, tokenizer: Tokenizer
) -> Iterator[Target]:  # fmt: skip
    """The tokens that are predicted. Each token of the first target has a record; tokens of other targets are added to it, or
    have their own records if each half of a vector predicts another target."""
    parts = [part for _, name, part in objectives(recipe, track) if stage.weights.get(name, 1.0)]
    read = batch.decoder or batch
    names = [name for name in read.targets if name in {target for part in parts for target in _targets_of(part)}]
    halves = TWO_HALVES in gives_of(recipe.system)
    for name in names if halves else names[:1]:
        others = [] if halves else [read.targets[other] for other in names[1:]]
        sides = filter(None, (part.around(batch) for part in parts if part.target == name))
        yield from _records(recipe, read, read.targets[name], others, next(sides, None), tokenizer)


def _targets_of(part: Objective) -> set[str]:
    """The names of all targets that an objective predicts."""
    read = {need.fact.removeprefix(TARGETS) for need in part.needs if need.fact.startswith(TARGETS)}
    return read | {part.target} if part.target else read


def _records(
    recipe: Recipe, read: Batch, first: Targets, others: Sequence[Targets], sides: tuple[Tensor, ...] | None, tokenizer: Tokenizer
) -> Iterator[Target]:  # fmt: skip
    """A record for each token of the first targets, with the tokens of the others that are predicted at the same place."""
    further = [_by_place(more) for more in others]
    sides = sides or (first.at, first.at, torch.zeros_like(first.weight))
    blind = "second stream" in gives_of(recipe.system)
    seen = (see.visible_before(read) if blind else see.visible(read))[0]
    if TWO_HALVES in gives_of(recipe.system):  # the half that predicts a later token sees no later one
        seen = seen.tril() if bool((first.where > first.at).any()) else seen.triu()
    sees = seen.sum(1).tolist()
    stored = (*sides, first.where, first.at, first.ids, first.start, first.end, first.weight)
    for left, right, between, place, at, i, start, end, weight in zip(*(c.tolist() for c in stored), strict=True):
        if weight:
            both = (left, right) if between else None
            more = tuple(_spell(tokenizer, after[at]) for after in further if at in after)
            yield Target(place, at, _spell(tokenizer, i), (start, end), both, sees[at], blind, more)


def questions(
    recipe: Recipe, track: FullTrack, stage: Stage, batch: Batch, done: float
) -> Iterator[ObjectiveAsked]:  # fmt: skip
    """Every objective and the places where it is computed. `done`: the share of training that is done."""
    hidden = {name: tuple(_by_place(targets)) for name, targets in (batch.decoder or batch).targets.items()}
    for by, name, part in objectives(recipe, track):
        places = {
            "examples": tuple(batch.summary[batch.counted > 0].tolist()),
            "tokens": tuple(torch.nonzero(batch.real[0])[:, 0].tolist()),
            "targets": tuple(sorted({place for name in _targets_of(part) for place in hidden.get(name, ())})),
        }[part.asked_at]
        weight = curves.at(stage.weights.get(name, 1.0), done)
        yield ObjectiveAsked(name, by, places, weight, _meaning(part))


def _by_place(targets: Targets) -> dict[int, int]:
    """For each place with a weight over 0, the id that is predicted there."""
    used = targets.weight > 0
    return dict(zip(targets.at[used].tolist(), targets.ids[used].tolist(), strict=True))


def answers(track: FullTrack, batch: Batch) -> Iterator[Answer]:
    """The classes of the examples for which the sentence task is computed."""
    if not track.arrange.classes:
        return
    for place, label, counted in zip(batch.summary.tolist(), batch.label.tolist(), batch.counted.tolist(), strict=True):
        if counted:
            yield Answer(place, label, track.arrange.answers[label])


def tags(recipe: Recipe, track: FullTrack, batch: Batch) -> Iterator[Tagged]:
    """The tokens whose class is in a column of the data, for each objective that predicts such a column."""
    for _, name, part in objectives(recipe, track):
        for column in sorted(columns_of(part)) if part.asked_at == "tokens" else ():
            for place, value in enumerate(batch.columns[column][0].tolist()):
                if value >= 0:
                    yield Tagged(name, place, value)


def tokens(made: Made, tokenizer: Tokenizer, hidden: Sequence[Unit]) -> Iterator[Token]:
    """The tokens of the row, without padding."""
    batch, laid = made.batch, made.batch if made.moves else made.before
    unit = {place: number for number, (start, end, *_) in enumerate(hidden) for place in range(start, end + 1)}
    was = _new_tokens(made, tokenizer) if made.moves else _hidden_tokens(made, tokenizer)
    assert batch.rank is not None
    stored = (
        batch.ids, laid.columns["word"], laid.columns["sentence"], laid.segment, batch.segment, batch.position,
        batch.rank, batch.example,
    )  # fmt: skip
    for place, values in enumerate(zip(*(column[0][batch.real[0]].tolist() for column in stored), strict=True)):
        i, word, sentence, half, segment, position, rank, example = values
        text = _spell(tokenizer, i)
        original, how = was.get(place, (text, None))
        yield Token(
            text=text, original=original, word=word, sentence=sentence, half=half, segment=segment, position=position,
            special=word < 0, hidden=how, unit=unit.get(place, -1), rank=rank, example=example,
        )  # fmt: skip


def _hidden_tokens(made: Made, tokenizer: Tokenizer) -> dict[int, tuple[str, Way]]:
    """For each hidden token, by its place: the original token, and how it is hidden."""
    found = units(made)
    columns = zip(found.places.tolist(), found.ids.tolist(), found.how.tolist(), strict=True)
    return {place: (_spell(tokenizer, i), WAYS[how]) for place, i, how in columns}


def _new_tokens(made: Made, tokenizer: Tokenizer) -> dict[int, tuple[str, Way]]:
    """For each new token, by its place: the text that it stands for, and what it is. An inserted one stands for nothing."""
    found: dict[int, tuple[str, Way]] = {}
    for place in torch.nonzero(made.batch.real[0])[:, 0].tolist():
        step, came = _came(made, place)
        if step is not None and step.hidden is not None:
            span = step.hidden.ids[step.hidden.start == came].tolist()
            found[place] = (" ".join(shown(_spell(tokenizer, i)) for i in span) or "nothing", _new_way(made, place))
    return found


def decoder(batch: Batch, tokenizer: Tokenizer) -> Iterator[Token]:
    """The tokens that a decoder reads, without padding."""
    rows = batch.decoder
    if rows is None or rows.rank is None:
        return
    special = set(tokenizer.vocabulary.special)
    stored = (rows.ids, rows.segment, rows.position, rows.rank, rows.example)
    for i, segment, position, rank, example in zip(*(c[0][rows.real[0]].tolist() for c in stored), strict=True):
        text = _spell(tokenizer, i)
        yield Token(
            text=text, original=text, word=-1, sentence=-1, half=segment, segment=segment, position=position,
            special=i in special, hidden=None, unit=-1, rank=rank, example=example,
        )  # fmt: skip


def _spell(tokenizer: Tokenizer, i: int) -> str:
    """A token as readable text. If it is only a part of a character, it is shown as in the vocabulary."""
    text = tokenizer.readable(i)
    return text if "\ufffd" not in text else tokenizer.token(i)
