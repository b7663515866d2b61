"""An explanation as data: what became of a text, in records that are drawn, printed and written as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from unmask.explanation.hidden_units import How

NAMES = {"mask": "masked", "random": "replaced at random", "keep": "kept", "moved": "put in another order"}

_SIGNS = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "⏎"})


@dataclass(frozen=True)
class Token:
    """One token of the row, as the model reads it."""

    text: str  # what stands there after hiding
    original: str  # what stood there before
    word: int  # number of the word in the row; -1 on special tokens
    sentence: int  # number of the sentence in the row; -1 on special tokens
    half: int  # 0 in the first text of its example, 1 in the second
    segment: int  # what the model is told: a row's view may number them anew
    position: int
    special: bool
    hidden: How | None  # None: not hidden in place
    unit: int  # which of the hidden units it belongs to; -1: none
    rank: int
    example: int


class Choice(NamedTuple):
    """One choice of the recipe."""

    axis: str  # arrange, hide, see, predict, backbone
    part: str  # its name and values
    meaning: str  # the first line of its documentation


class Drawn(NamedTuple):
    """What was drawn for the whole row."""

    axis: str  # view, level
    name: str
    share: float  # of the rows that draw it
    meaning: str


class Found(NamedTuple):
    """Something that the lexicon knows."""

    level: str
    start: int
    end: int  # its last token


class Unit(NamedTuple):
    """What is hidden as a whole."""

    start: int
    end: int  # its last token
    how: How | Literal["mixed"]  # of its tokens; mixed: not of all
    words: int  # that it has a part in
    level: str  # phrase or entity, where it is one of the lexicon; otherwise empty


class Target(NamedTuple):
    """One token to be predicted."""

    place: int  # where the prediction is made
    text: str
    span: tuple[int, int]  # first and last place of the run it belongs to
    around: tuple[int, int] | None  # the nearest places in sight left and right, if it is also predicted from them
    sees: int  # how many tokens are seen from there
    blind: bool  # whether it is predicted by a stream that does not see its own token
    further: tuple[str, ...] = ()  # what is predicted from the same place besides: the token after it, and so on


class ObjectiveAsked(NamedTuple):
    """One objective: who must say what, and where."""

    name: str
    by: str  # network, generator or discriminator
    places: tuple[int, ...]
    weight: float  # of its loss, as the stage begins
    meaning: str


class Answer(NamedTuple):
    """The class of one example, which the sentence task predicts."""

    place: int  # of the summary token it is read off
    label: int
    meaning: str


@dataclass(frozen=True)
class Explanation:
    """What became of a text: the first row that was made of it, without its padding."""

    recipe: str
    size: str
    variant: str
    idea: str  # hide ..., see ..., predict ...
    stage: int  # of the schedule, counted from 1
    stages: int  # how many there are
    seed: int
    visit: int
    choices: tuple[Choice, ...]
    drawn: tuple[Drawn, ...]  # for the row; none where all rows are alike
    tokens: tuple[Token, ...]
    visible: tuple[tuple[bool, ...], ...]  # T T, may the query (first) see the key (second)?
    found: tuple[Found, ...]  # of the lexicon
    units: tuple[Unit, ...]
    targets: tuple[Target, ...]
    questions: tuple[ObjectiveAsked, ...]
    answers: tuple[Answer, ...]  # one per example; none without a sentence task, or where the view leaves it out
    classes: int  # of the sentence task; 0 without one
    notes: tuple[str, ...]  # the tokenizer used, what was added, what was cut


def to_json(value: Any) -> Any:
    """Records as dicts, lists, words and numbers."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {name: to_json(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple) else value


def shown(text: str) -> str:
    """A token without the sign of its place in the word, white space made visible."""
    return text.removeprefix("##").removeprefix("▁").strip(" ").translate(_SIGNS) or "␣"


def continues(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a token goes on with the word of the one before it."""
    return place > 0 and tokens[place].word >= 0 and tokens[place].word == tokens[place - 1].word


def drawn_as(token: Token) -> str:
    """What a token is drawn as: special, plain, or the way it is hidden."""
    return token.hidden or ("special" if token.special else "plain")


def run_name(explanation: Explanation) -> str:
    """What the row depends on besides the text and the recipe."""
    variant = f"variant {explanation.variant}, " if explanation.variant != "paper" else ""
    stage = f"stage {explanation.stage} of {explanation.stages}, " if explanation.stages > 1 else ""
    return f"{variant}{stage}seed {explanation.seed}, visit {explanation.visit}"


def span_name(start: int, end: int) -> str:
    return f"{start}" if start == end else f"{start} to {end}"


def size_name(unit: Unit) -> str:
    """What a unit is: one of the lexicon, or so many words; tokens where it is no more than a word."""
    tokens = unit.end - unit.start + 1
    return unit.level or (f"{unit.words} words" if unit.words > 1 else f"{tokens} token{'s' * (tokens > 1)}")


def answer_name(answer: Answer) -> str:
    return f"“{answer.meaning}” (class {answer.label})"


def not_asked(explanation: Explanation) -> str:
    """Why there is no answer, where there is a sentence task."""
    if not explanation.classes or explanation.answers:
        return ""
    view = next((drawn.name for drawn in explanation.drawn if drawn.axis == "view"), "")
    return f"the sentence task is not asked in the view “{view}”"


def judged(explanation: Explanation) -> list[ObjectiveAsked]:
    """What a second network is asked, which reads the row with a generator's guesses in it."""
    return [question for question in explanation.questions if question.by == "discriminator"]
