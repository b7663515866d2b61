"""Classify: the probability of each label for each text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.data.given import Text
from unmask.errors import require
from unmask.infer.model import Model
from unmask.predict import Label


@dataclass(frozen=True)
class Prediction:
    label: str
    probabilities: dict[str, float]


def classify(model: Model, texts: Sequence[Text]) -> list[Prediction]:
    """The most likely label of each text, and how likely every label is."""
    names = model.labels
    return [
        Prediction(names[int(row.argmax())], dict(zip(names, row.tolist(), strict=True)))
        for row in probabilities(model, texts)
    ]


def readings(label: Any, texts: Sequence[Text]) -> Sequence[Text | tuple[Text, ...]]:
    """The texts as a head for labels wants them read: each once, or pairs in both orders."""
    return [text.orders for text in texts] if label.orders == "both" else texts


def probabilities(model: Model, texts: Sequence[Text]) -> np.ndarray:
    """Texts x labels."""
    head = model.head(Label, "classify: adapt it first with 'unmask adapt'")
    require(bool(texts), "no texts to classify")
    out = np.empty((len(texts), len(model.labels)), np.float32)
    for chosen, batch, hidden in model.passes(readings(head.spec, texts)):
        out[chosen] = head.decode(hidden, batch).float().softmax(-1).cpu().numpy()  # type: ignore[operator]
    return out
