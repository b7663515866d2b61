"""Classify: the probability of each label for each text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from unmask.data.examples import Text
from unmask.errors import UserError, require
from unmask.infer.model import Model
from unmask.predict import Label

ADAPT_FIRST: Final = "classify (adapt it first with 'unmask adapt')"


@dataclass(frozen=True)
class Prediction:
    label: str  # the most likely one
    probabilities: dict[str, float]  # of every label

    @property
    def probability(self) -> float:
        """Of the most likely label."""
        return self.probabilities[self.label]

    def top(self, count: int) -> list[tuple[str, float]]:
        """The most likely labels with their probabilities, the most likely first; fewer if there are fewer."""
        return sorted(self.probabilities.items(), key=lambda pair: -pair[1])[:count]


def classify(model: Model, texts: Sequence[Text], where: Sequence[str] = ()) -> list[Prediction]:
    """The most likely label of each text, and how likely every label is. `where`: what errors call each text."""
    names = model.labels
    check_texts(model.head(Label, ADAPT_FIRST).spec, texts, str(model.folder), where)
    return [
        Prediction(names[int(row.argmax())], dict(zip(names, row.tolist(), strict=True)))
        for row in probabilities(model, texts)
    ]


def readings(label: Any, texts: Sequence[Text]) -> Sequence[Text | tuple[Text, ...]]:
    """The texts as a head for labels wants them read: each once, or pairs in both orders."""
    return [text.orders for text in texts] if label.orders == "both" else texts


def check_texts(label: Any, texts: Sequence[Text], reader: str, names: Sequence[str] = ()) -> None:
    """Refuse a text for a head that was trained on pairs, and a pair for one that was not. `names`: of the texts."""
    wrong = next((i for i, text in enumerate(texts) if label.texts not in (None, 1 if text.b is None else 2)), None)
    if wrong is not None:
        where = names[wrong] if names else f"text number {wrong + 1:,} of {len(texts):,}"
        raise UserError(
            f"{where}: one text, and {reader} reads pairs: give two texts (text_a and text_b, or --text twice)"
            if label.texts == 2
            else f"{where}: two texts, and {reader} reads one: give one text (text, or --text once)"
        )


def probabilities(model: Model, texts: Sequence[Text]) -> np.ndarray:
    """Texts x labels."""
    head = model.head(Label, ADAPT_FIRST)
    require(bool(texts), "no texts to classify")
    check_texts(head.spec, texts, str(model.folder))
    out = np.empty((len(texts), len(model.labels)), np.float32)
    for chosen, batch, hidden in model.passes(readings(head.spec, texts)):
        out[chosen] = head.decode(hidden, batch).float().softmax(-1).cpu().numpy()  # type: ignore[operator]
    return out
