"""The answers of a model: a label with the probability of every label, a text that the model wrote, tags, spans."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unmask.axes import Graded
from unmask.errors import require
from unmask.tasks._entities import entities


@dataclass(frozen=True)
class Prediction:
    """The label that a model predicts for an example. In a task with choices, the text of a choice is its label."""

    label: str  # the most likely one; "" if the model is not sure enough
    probabilities: dict[str, float]  # of every label

    @property
    def probability(self) -> float:
        """The probability of the most likely label."""
        return max(self.probabilities.values())

    def if_sure(self, threshold: float) -> Prediction:
        """The same without a label, if its probability is under a threshold."""
        return self if self.probability >= threshold else replace(self, label="")

    def graded(self, truth: str) -> Graded:
        """This answer next to the right label."""
        return Graded(self.label, self.probability, truth, self.probabilities.get(truth, 0.0), self.label == truth)

    def top(self, count: int) -> list[tuple[str, float]]:
        """The `count` most likely labels with their probabilities, the most likely first. There may be fewer labels."""
        return sorted(self.probabilities.items(), key=lambda pair: -pair[1])[:count]

    def columns(self, top: int) -> dict[str, Any]:
        """The `top` labels and their probabilities as columns: label, probability, label_2, probability_2 ..."""
        numbers = ["" if place == 1 else f"_{place}" for place in range(1, top + 1)]
        best = [(label, round(share, 6)) for label, share in self.top(top)]
        best[0] = (self.label, best[0][1])
        found: dict[str, Any] = {}
        for number, (label, share) in zip(numbers, [*best, *[("", "")] * top], strict=False):
            found |= {f"label{number}": label, f"probability{number}": share}
        return found

    def as_json(self, top: int) -> dict[str, Any]:
        """The label and the probability of every label. If `top` is over 1, also the best labels in order."""
        best = [{"label": label, "probability": share} for label, share in self.top(top)]
        return {"label": self.label, "probabilities": self.probabilities} | ({"top": best} if top > 1 else {})


@dataclass(frozen=True)
class Written:
    """A text that a model wrote from a source."""

    text: str

    def columns(self, top: int) -> dict[str, Any]:
        require(
            top == 1,
            ("--top {top} asks for several answers, but the model writes one text for each source: leave --top out"),
            top=top,
        )
        return {"written": self.text}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top)


@dataclass(frozen=True)
class Tagged:
    """The tags of the words of a sentence."""

    words: tuple[str, ...]
    tags: tuple[str, ...]  # one for each word
    probabilities: tuple[float, ...]  # of each tag; with a CRF, among the best sequences with each tag
    spans: bool = False  # whether the tags mark spans
    # words x all tags, the probability of each; the row of a word without a token of its own is 0
    shares: np.ndarray | None = field(default=None, compare=False, repr=False)

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The spans that the tags mark: their type, their words, and the numbers of the first and after the last."""
        return [
            {"type": kind, "words": list(self.words[begin:end]), "start": begin, "end": end}
            for kind, begin, end in entities(self.tags if self.spans else ())
        ]

    def columns(self, top: int) -> dict[str, Any]:
        _one(top, "one tag to each word")
        return {"tags": list(self.tags), "probabilities": [round(share, 6) for share in self.probabilities]}

    def as_json(self, top: int) -> dict[str, Any]:
        return {"tokens": list(self.words)} | self.columns(top) | ({"entities": self.entities} if self.spans else {})


@dataclass(frozen=True)
class Found:
    """The answers to a question that were found in a text, the best first. An empty text: there is no answer."""

    best: tuple[tuple[str, tuple[int, int], float], ...]  # the text, its characters, and its probability among these

    @property
    def text(self) -> str:
        return self.best[0][0]

    def if_sure(self, threshold: float) -> Found:
        """The same with an empty text in the place of the best answer, if its probability is under a threshold."""
        share = self.best[0][2]
        return self if share >= threshold else Found((("", (0, 0), share), *self.best[1:]))

    def columns(self, top: int) -> dict[str, Any]:
        """The `top` answers and their probabilities as columns: answer, probability, answer_2, probability_2 ..."""
        found: dict[str, Any] = {}
        for place in range(1, top + 1):
            number = "" if place == 1 else f"_{place}"
            text, _, share = self.best[place - 1] if place <= len(self.best) else ("", (0, 0), 0.0)
            found |= {f"answer{number}": text, f"probability{number}": round(share, 6)}
        return found

    def as_json(self, top: int) -> dict[str, Any]:
        several = [{"answer": t, "start": b, "end": e, "probability": share} for t, (b, e), share in self.best[:top]]
        return several[0] | ({"top": several} if top > 1 else {})


@dataclass(frozen=True)
class Number:
    """The number that a model predicts for an example."""

    number: float

    def columns(self, top: int) -> dict[str, Any]:
        _one(top, "one number for each example")
        return {"number": round(self.number, 6)}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top)


@dataclass(frozen=True)
class Several:
    """The labels that a model gives to an example: any number of them, and the probability of every label."""

    labels: tuple[str, ...]
    probabilities: dict[str, float]  # of every label

    def if_sure(self, threshold: float) -> Several:
        """The same without the labels whose probability is under a threshold."""
        return replace(self, labels=tuple(name for name in self.labels if self.probabilities[name] >= threshold))

    def columns(self, top: int) -> dict[str, Any]:
        _one(top, "all labels that are likely enough")
        shares = {name: round(share, 6) for name, share in self.probabilities.items()}
        return {"labels": list(self.labels), "probabilities": shares}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top) | {"probabilities": self.probabilities}


@dataclass(frozen=True)
class Ranked:
    """How well a passage answers its query."""

    score: float  # the higher, the better
    rank: int  # among the passages of its query, from 1

    def columns(self, top: int) -> dict[str, Any]:
        _one(top, "one score to each passage")
        return {"rank": self.rank, "score": round(self.score, 6)}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top)


def _one(top: int, gives: str) -> None:
    require(
        top == 1,
        "--top {top} asks for several answers, but the model gives {gives}: leave --top out",
        top=top,
        gives=gives,
    )
