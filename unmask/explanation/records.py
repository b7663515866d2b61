"""An explanation as data: what became of a text, in records that are drawn, printed and written as JSON."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from unmask.axes import Way

NAMES = {"mask": "masked", "random": "replaced at random", "keep": "kept", "moved": "put in another order"}

_SIGNS = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "⏎"})


@dataclass(frozen=True)
class Token:
    """One token of the row, as the network reads it."""

    text: str  # what stands there after hiding
    original: str  # what stood there before
    word: int  # number of the word in the row; -1 on special tokens
    sentence: int  # number of the sentence in the row; -1 on special tokens
    half: int  # 0 in the first text of its example, 1 in the second
    segment: int  # the number that the network reads: a track may have its own numbers
    position: int
    special: bool
    hidden: Way | None  # None: not hidden where it stands
    unit: int  # the number of its hidden unit; -1: none
    rank: int
    example: int


class Choice(NamedTuple):
    """One choice of the recipe."""

    axis: str  # arrange, hide, see, predict, backbone
    part: str  # its name and values
    meaning: str  # the first line of its documentation


class Drawn(NamedTuple):
    """What holds for the whole row and not for every row: its track, or the level that it drew."""

    axis: str  # track, level
    name: str
    share: float  # of the rows for which it holds
    meaning: str


class Found(NamedTuple):
    """An entry of the lexicon in the row."""

    level: str
    start: int
    end: int  # its last token


class Unit(NamedTuple):
    """What is hidden as a whole."""

    start: int
    end: int  # its last token
    how: Way | Literal["mixed"]  # how its tokens are hidden; mixed: in several ways
    words: int  # the number of words that have a token in it
    level: str  # phrase or entity, if it is an entry of the lexicon; otherwise empty


class Target(NamedTuple):
    """One token to be predicted."""

    place: int  # of the token
    at: int  # the place that predicts it: its own place, or an earlier one
    text: str
    span: tuple[int, int]  # first and last place of the run that it belongs to
    around: tuple[int, int] | None  # the nearest visible places left and right, if it is also predicted from them
    sees: int  # how many tokens are visible at the place that predicts it
    blind: bool  # whether a stream predicts it that does not see the token at its own place
    further: tuple[str, ...] = ()  # other tokens that are predicted at the same place, such as the token after it


class ObjectiveAsked(NamedTuple):
    """One objective: which network predicts what, and where."""

    name: str
    by: str  # network, generator or discriminator
    places: tuple[int, ...]
    weight: float  # of its loss when the stage begins
    meaning: str


class Answer(NamedTuple):
    """The class of one example, which the sentence task predicts."""

    place: int  # of the summary token that predicts it
    label: int
    meaning: str


@dataclass(frozen=True)
class Explanation:
    """What became of a text: the first row that was made of it, without its padding."""

    recipe: str
    size: str
    variant: str
    idea: str  # hide ..., see ..., predict ...
    track: str  # the name of the track
    stage: int  # of the schedule, counted from 1
    stages: int  # how many there are
    seed: int
    visit: int
    choices: tuple[Choice, ...]
    drawn: tuple[Drawn, ...]  # what holds for this row and not for all; empty if all rows are alike
    tokens: tuple[Token, ...]
    visible: tuple[tuple[bool, ...], ...]  # T T, may the query (first) see the key (second)?
    found: tuple[Found, ...]  # of the lexicon
    units: tuple[Unit, ...]
    targets: tuple[Target, ...]
    questions: tuple[ObjectiveAsked, ...]
    answers: tuple[Answer, ...]  # one per example; empty without a sentence task, or if the track does not ask it
    classes: int  # of the sentence task; 0 without one
    notes: tuple[str, ...]  # the tokenizer used, what was added, what was cut

    def as_json(self) -> dict[str, Any]:
        """As dicts, lists, strings and numbers."""
        found: dict[str, Any] = to_json(self)
        return found

    def __rich__(self) -> Any:
        """How rich prints it: for a terminal of 80 columns or more."""
        from unmask.explanation.screen import render  # drawing is not needed to explain

        return render(self)


def to_json(value: Any) -> Any:
    """Records as dicts, lists, strings and numbers."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {name: to_json(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple) else value


def shown(text: str) -> str:
    """A token without the mark of its place in the word; white space is made visible."""
    return text.removeprefix("##").removeprefix("▁").strip(" ").translate(_SIGNS) or "␣"


def continues(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a token continues the word of the token before it."""
    return place > 0 and tokens[place].word >= 0 and tokens[place].word == tokens[place - 1].word


def drawn_as(token: Token) -> str:
    """What a token is drawn as: special, plain, or the way it is hidden."""
    return token.hidden or ("special" if token.special else "plain")


def run_name(explanation: Explanation) -> str:
    """What the row depends on, apart from the text and the recipe."""
    variant = f"variant {explanation.variant}, " if explanation.variant != "paper" else ""
    stage = f"stage {explanation.stage} of {explanation.stages}, " if explanation.stages > 1 else ""
    return f"{variant}{stage}seed {explanation.seed}, visit {explanation.visit}"


def span_name(start: int, end: int) -> str:
    return f"{start}" if start == end else f"{start} to {end}"


def size_name(unit: Unit) -> str:
    """What a unit is: an entry of the lexicon, or a number of words; tokens, if it is at most one word."""
    tokens = unit.end - unit.start + 1
    return unit.level or (f"{unit.words} words" if unit.words > 1 else f"{tokens} token{'s' * (tokens > 1)}")


def share_name(drawn: Drawn) -> str:
    """For how many rows it holds."""
    if drawn.axis == "track":
        return f"{drawn.share:.0%} of the rows are of this track"
    rows = "all rows of this stage" if drawn.share == 1 else f"{drawn.share:.0%} of the rows"
    return f"{rows} take this {drawn.axis}"


def answer_name(answer: Answer) -> str:
    return f"“{answer.meaning}” (class {answer.label})"


def not_asked(explanation: Explanation) -> str:
    """Why there is no answer, if the recipe has a sentence task."""
    if not explanation.classes or explanation.answers:
        return ""
    return f"the sentence task is not asked in the track “{explanation.track}”"


def judged(explanation: Explanation) -> list[ObjectiveAsked]:
    """What the discriminator is asked: it reads the row with the guesses of a generator."""
    return [question for question in explanation.questions if question.by == "discriminator"]
