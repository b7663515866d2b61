"""The result of hiding: the hidden tokens and units, how each is hidden, and the level of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from unmask.axes import InPlace, Objective, Way, rules
from unmask.batch import Batch, Targets, Vocabulary
from unmask.hide.choice import targets
from unmask.hide.masked import version
from unmask.hide.source import Source
from unmask.recipe import FullTrack
from unmask.system.tracks import only_asked, view

WAYS: tuple[Way, ...] = get_args(Way)
_MASK, _RANDOM, _KEEP, _MOVED = map(WAYS.index, ("mask", "random", "keep", "moved"))

_LEVELS = {
    "token": "Every token, or word, is hidden by itself.",
    "phrase": "Whole phrases are hidden. Where there is no phrase, words are hidden.",
    "entity": "Whole entities are hidden. Where there is no entity, phrases and words are hidden.",
}


@dataclass(frozen=True)
class HiddenTokens:
    """The tokens that one rule hides in place, sorted by place."""

    rule: InPlace  # the rule
    places: np.ndarray  # flat index of each token
    ids: np.ndarray  # the original token
    how: np.ndarray  # index into WAYS
    start: np.ndarray  # flat index of the first token of its unit
    end: np.ndarray  # flat index of the last token of its unit
    words: np.ndarray  # the number of words that have a token in its unit


@dataclass(frozen=True)
class Step:
    """One rule: the batch before it, and where each token of the batch after it came from."""

    before: Batch
    source: Source | None  # None: every token stays where it is
    hidden: HiddenTokens | None  # the tokens that it hides in place; None: it hides none


@dataclass(frozen=True)
class Made:
    """Rows before and after hiding."""

    before: Batch  # before hiding
    batch: Batch  # after hiding, as the network reads it
    steps: tuple[Step, ...]  # one for each rule, in order
    mask: int | None  # the id of [MASK]
    level: tuple[str, ...]  # the level of each row; (): there are no levels

    @property
    def hidden(self) -> tuple[HiddenTokens, ...]:
        """The hidden tokens of each rule that hides in place."""
        return tuple(step.hidden for step in self.steps if step.hidden is not None)

    @property
    def moves(self) -> bool:
        """Whether tokens are removed or change places outside of hidden units: then a decoder writes the text."""
        return any(step.source is not None for step in self.steps) and self.batch.decoder is not None


@dataclass(frozen=True)
class Units:
    """The hidden units of a batch, sorted by place, and their tokens."""

    start: np.ndarray  # flat index of the first token of each unit
    end: np.ndarray  # flat index of the last token of each unit
    moved: np.ndarray  # True if the tokens of the unit only changed places
    words: np.ndarray  # the number of words that have a token in the unit
    places: np.ndarray  # flat index of each hidden token
    ids: np.ndarray  # the original token of each hidden token
    how: np.ndarray  # how each hidden token is hidden: index into WAYS


class Share(NamedTuple):
    """One of the possible levels of a row."""

    name: str  # the name of the level
    share: float  # share of the rows with this level
    meaning: str  # a sentence about what is hidden


def make(track: FullTrack, batch: Batch, vocabulary: Vocabulary, seed: int, asked: list[Objective]) -> Made:
    """Hide the rows of a track as in training, one rule after the other, and find out what each rule changed."""
    now, steps = track.see.draw(batch, seed), []
    for rule in rules(track.hide):
        after, hidden = rule.apply(now, vocabulary, seed), None
        if rule.in_place is not None:
            hidden = _hidden_by(rule.in_place, now, after, vocabulary, rule.chosen(now, vocabulary, seed), seed)
        steps.append(Step(now, rule.source(now, vocabulary, seed), hidden))
        now = after
    read = only_asked(track, view(track, now), asked)
    return Made(batch, read, tuple(steps), vocabulary.mask, _level(track, batch, seed))


def in_place(track: FullTrack) -> Iterator[InPlace]:
    """The rules of a track that hide tokens in place."""
    for rule in rules(track.hide):
        if rule.in_place is not None:
            yield rule.in_place


def moves(rule: InPlace) -> bool:
    """Whether the tokens that a rule hides only change places."""
    return "moved" in rule.replace.shares


def levels(track: FullTrack) -> list[Share]:
    """The possible levels of a row; empty if there are no levels."""
    shares = next((rule.units.levels for rule in in_place(track) if rule.units.levels), {})
    return [Share(name, share, _LEVELS.get(name, "")) for name, share in shares.items()]


def units(made: Made) -> Units:
    """The units that all rules hide in place."""
    none = np.zeros(0, np.int64)
    found = {
        name: np.concatenate([none, *(getattr(tokens, name) for tokens in made.hidden)])
        for name in ("places", "ids", "how", "start", "end", "words")
    }
    order = np.argsort(found["places"], kind="stable")
    places, ids, how, start, end, words = (values[order] for values in found.values())
    first, at = np.unique(start, return_index=True)
    return Units(first, end[at], how[at] == _MOVED, words[at], places, ids, how)


def of_runs(tokens: HiddenTokens, length: int) -> np.ndarray:
    """How each run of neighbouring hidden tokens is hidden: index into WAYS. `length`: the length of a row."""
    places, how = tokens.places, tokens.how
    begins = np.flatnonzero((np.diff(places, prepend=-2) != 1) | (places % length == 0))
    replaced = np.bincount(np.searchsorted(begins, np.arange(len(how)), "right") - 1, how == _RANDOM) > 0
    return np.where(replaced, _RANDOM, how[begins])


def _hidden_by(
    rule: InPlace, before: Batch, after: Batch, vocabulary: Vocabulary, chosen: Any, seed: int
) -> HiddenTokens:
    """The tokens that a rule hid: those it added to the targets, and those it replaced although no place predicts them. A rule
    without targets names its tokens itself (`chosen`)."""
    news = [name for name in after.targets if _is_new(before, after, name)]
    if news:
        now, changed = after.ids.flatten().numpy(), (after.ids != before.ids).flatten().numpy()
        found = _added(before, after, news[0])
        used = np.flatnonzero((found["weight"] > 0) | changed[found["where"]])
    else:
        units = rule.units.label(before, seed, version(before, rule.copies))
        count = before.shape[1]
        found = {key: value.numpy() for key, value in vars(targets(before, units, chosen, count)).items()}
        now, used = after.ids.flatten().numpy(), np.flatnonzero(found["weight"] > 0)
    where, word = found["where"], before.columns["word"].flatten().numpy()
    begun = np.cumsum(np.diff(word, prepend=-1) != 0)  # words that have begun; their numbers may be in another order
    used = used[np.argsort(where[used])]
    places, ids, start, end = (found[name][used] for name in ("where", "ids", "start", "end"))
    how = _how(rule, now[places], ids, vocabulary.mask)
    return HiddenTokens(rule, places, ids, how, start, end, begun[end] - begun[start] + 1)


def _is_new(before: Batch, after: Batch, name: str) -> bool:
    return after.targets[name] is not before.targets.get(name)


def _added(before: Batch, after: Batch, name: str) -> dict[str, np.ndarray]:
    """The targets of a rule. In each row they come after the targets of earlier rules."""
    rows, known = after.shape[0], before.targets.get(name)
    count = len(known.where) // rows if known is not None else 0
    added: Targets = after.targets[name]
    return {key: value.view(rows, -1)[:, count:].flatten().numpy() for key, value in vars(added).items()}


def _how(rule: InPlace, now: np.ndarray, before: np.ndarray, mask: int | None) -> np.ndarray:
    """How each token is hidden. A random token that happens to equal the original token counts as kept."""
    ways = [WAYS.index(way) for way, share in rule.replace.shares.items() if share > 0]
    if len(ways) == 1:
        return np.full(len(now), ways[0])
    return np.where(now == (-1 if mask is None else mask), _MASK, np.where(now != before, _RANDOM, _KEEP))


def _level(track: FullTrack, batch: Batch, seed: int) -> tuple[str, ...]:
    """The name of the level of each row; () if there are no levels."""
    for rule in in_place(track):
        number = rule.units.level(batch, seed, version(batch, rule.copies))
        if number is not None:
            names = [*rule.units.levels]
            return tuple(names[one] for one in number.tolist())
    return ()
