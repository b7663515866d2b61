"""Answers: a label with the probability of every label, or a text that was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.errors import require


@dataclass(frozen=True)
class Prediction:
    """One of several labels, or of several texts to choose from."""

    label: str  # the most likely one
    probabilities: dict[str, float]  # of every label

    @property
    def probability(self) -> float:
        """Of the most likely label."""
        return self.probabilities[self.label]

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most likely labels with their probabilities, the most likely first; fewer if there are fewer."""
        return sorted(self.probabilities.items(), key=lambda pair: -pair[1])[:count]

    def columns(self, top: int) -> dict[str, Any]:
        """The best labels and their probabilities, by column: label, probability, label_2, probability_2 ..."""
        numbers = ["" if place == 1 else f"_{place}" for place in range(1, top + 1)]
        best = [(label, round(share, 6)) for label, share in self.top(top)]
        found: dict[str, Any] = {}
        for number, (label, share) in zip(numbers, [*best, *[("", "")] * top], strict=False):
            found |= {f"label{number}": label, f"probability{number}": share}
        return found

    def as_json(self, top: int) -> dict[str, Any]:
        """The label and the probability of every label; with `top` over 1, the best of them in order."""
        best = [{"label": label, "probability": share} for label, share in self.top(top)]
        return {"label": self.label, "probabilities": self.probabilities} | ({"top": best} if top > 1 else {})


@dataclass(frozen=True)
class Written:
    """A text that was written from a source."""

    text: str

    def columns(self, top: int) -> dict[str, Any]:
        require(
            top == 1, f"--top {top} asks for several answers, and one text is written from each source: leave it out"
        )
        return {"written": self.text}

    def as_json(self, top: int) -> dict[str, Any]:
        return self.columns(top)
