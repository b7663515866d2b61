"""An explanation as data: records that can be drawn, printed and written as JSON."""

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

    text: str  # the token after hiding
    original: str  # the token before hiding
    word: int  # number of the word in the row; -1 on special tokens
    sentence: int  # number of the sentence in the row; -1 on special tokens
    half: int  # 0 in the first text of its example, 1 in the second
    segment: int  # the segment number that the network reads; a track may have its own numbers
    position: int  # the position number that the network reads
    special: bool  # whether it is a special token
    hidden: Way | None  # how it is hidden; None: it is not hidden in place
    unit: int  # the number of its hidden unit; -1: none
    rank: int  # a token sees the tokens with the same rank or a lower one
    example: int  # number of the example in the row


class Choice(NamedTuple):
    """One choice of the recipe."""

    axis: str  # arrange, hide, see, predict, backbone
    part: str  # the name and the values of the part
    meaning: str  # the first line of the part's docstring


class Drawn(NamedTuple):
    """A random choice for a whole row: its track, or its level."""

    axis: str  # track, level
    name: str  # the name of the track or the level
    share: float  # share of the rows with this track or level
    meaning: str  # a sentence about it
    of: str = "rows"  # what the share is of: rows, or steps if tracks take turns


class Found(NamedTuple):
    """An entry of the lexicon in the row."""

    level: str  # phrase or entity
    start: int  # place of its first token
    end: int  # place of its last token


class Unit(NamedTuple):
    """Tokens that are hidden together."""

    start: int  # place of the first token
    end: int  # place of the last token
    how: Way | Literal["mixed"]  # how its tokens are hidden; mixed: in several ways
    words: int  # the number of words that have a token in the unit
    level: str  # phrase or entity, if it is an entry of the lexicon; otherwise empty


class Target(NamedTuple):
    """One token that is predicted."""

    place: int  # the place of the token
    at: int  # the place whose vector predicts it: its own place, or an earlier one; if there is a decoder, a place there
    text: str  # the token that is predicted
    span: tuple[int, int]  # first and last place of the run of hidden tokens around it
    around: tuple[int, int] | None  # the nearest visible places left and right, if it is also predicted from them
    sees: int  # the number of tokens that are visible at the place that predicts it
    blind: bool  # whether it is predicted by a second stream, which does not see the token at its own place
    further: tuple[str, ...] = ()  # other tokens that are predicted at the same place, such as the token after it


class ObjectiveAsked(NamedTuple):
    """One objective: which network predicts what, and where."""

    name: str  # the name of the objective in the recipe
    by: str  # network, generator or discriminator
    places: tuple[int, ...]  # the places where it is computed
    weight: float  # the weight of its loss when the stage begins
    meaning: str  # the first line of the part's docstring


class Answer(NamedTuple):
    """The class of one example, which the sentence task predicts."""

    place: int  # the place of the summary token that predicts it
    label: int  # the number of the class
    meaning: str  # the name of the class


class Tagged(NamedTuple):
    """The class of one token, which an objective predicts."""

    objective: str  # its name
    place: int
    value: int  # the number of the class


@dataclass(frozen=True)
class Explanation:
    """The first training row that is made from a text, without padding, and what is predicted in it."""

    recipe: str  # the name of the recipe
    size: str  # the size of the recipe
    variant: str  # the variant of the recipe
    idea: str  # hide ..., see ..., predict ...
    track: str  # the name of the track
    stage: int  # the stage of the schedule, counted from 1
    stages: int  # the number of stages
    seed: int  # the seed of all random choices
    visit: int  # how many times the text was read before
    choices: tuple[Choice, ...]  # one per axis
    drawn: tuple[Drawn, ...]  # the track and the level of this row; empty if all rows have the same
    tokens: tuple[Token, ...]  # the tokens of the row
    moved: bool  # whether tokens were removed or changed places, so that a new token stands for a whole span
    visible: tuple[tuple[bool, ...], ...]  # T T, whether the query (first index) sees the key (second index)
    found: tuple[Found, ...]  # the entries of the lexicon in the row
    units: tuple[Unit, ...]  # the hidden units
    targets: tuple[Target, ...]  # the tokens that are predicted
    decoder: tuple[
        Token, ...
    ]  # the tokens that a decoder reads; it predicts the targets there; empty: there is no decoder
    questions: tuple[ObjectiveAsked, ...]  # the objectives, and the places where they are computed
    answers: tuple[Answer, ...]  # one per example; empty if the recipe or the track has no sentence task
    classes: int  # number of classes of the sentence task; 0: there is no sentence task
    tags: tuple[Tagged, ...]  # tokens whose class is predicted; empty if no objective predicts classes of tokens
    notes: tuple[str, ...]  # the tokenizer used, what was added, what was cut
    misfit: str = ""  # why the recipe cannot be trained: which parts do not fit, and what helps; empty: it can

    @property
    def predicting(self) -> tuple[Token, ...]:
        """The tokens at which targets are predicted."""
        return self.decoder or self.tokens

    def as_json(self) -> dict[str, Any]:
        """The explanation as dicts, lists, strings and numbers."""
        found: dict[str, Any] = to_json(self)
        return found

    def __rich__(self) -> Any:
        """The explanation for a terminal with 80 columns or more. The library rich calls this method to print it."""
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
    """A token as it is shown: without the mark for the start or the middle of a word, and with visible white space."""
    return text.removeprefix("##").removeprefix("▁").strip(" ").translate(_SIGNS) or "␣"


def continues(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a token continues the word of the token before it."""
    return place > 0 and tokens[place].word >= 0 and tokens[place].word == tokens[place - 1].word


def drawn_as(token: Token) -> str:
    """The kind of a token, which decides its colour: special, plain, or the way it is hidden."""
    return token.hidden or ("special" if token.special else "plain")


def run_name(explanation: Explanation) -> str:
    """The variant, the stage, the seed and the visit as text. The row depends on them."""
    variant = f"variant {explanation.variant}, " if explanation.variant != "paper" else ""
    stage = f"stage {explanation.stage} of {explanation.stages}, " if explanation.stages > 1 else ""
    return f"{variant}{stage}seed {explanation.seed}, visit {explanation.visit}"


def span_name(start: int, end: int) -> str:
    return f"{start}" if start == end else f"{start} to {end}"


def size_name(unit: Unit) -> str:
    """The size of a unit as text: the level of a lexicon entry, or the number of words, or of tokens within one word."""
    tokens = unit.end - unit.start + 1
    return unit.level or (f"{unit.words} words" if unit.words > 1 else f"{tokens} token{'s' * (tokens > 1)}")


def share_name(drawn: Drawn) -> str:
    """The share of the rows with this track or level, as text."""
    if drawn.axis == "track":
        return f"{drawn.share:.0%} of the {drawn.of} are of this track"
    rows = "all rows of this stage" if drawn.share == 1 else f"{drawn.share:.0%} of the rows"
    return f"{rows} take this {drawn.axis}"


def answer_name(answer: Answer) -> str:
    return f"“{answer.meaning}” (class {answer.label})"


def not_asked(explanation: Explanation) -> str:
    """Says why there is no answer, if the recipe has a sentence task and the row has none; otherwise empty."""
    if not explanation.classes or explanation.answers:
        return ""
    return f"the sentence task is not computed in the track “{explanation.track}”"


def judged(explanation: Explanation) -> list[ObjectiveAsked]:
    """The objectives of the discriminator, which reads the row with the predictions of the generator."""
    return [question for question in explanation.questions if question.by == "discriminator"]
