"""Choose: how likely each choice of a question is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from unmask.errors import require
from unmask.infer.classify import Prediction
from unmask.infer.model import Model
from unmask.predict import Choice
from unmask.tasks.choose import Question

KEEP: Final = "back"  # of a context that is too long: its end, where the question stands


def choose(model: Model, questions: Sequence[Question]) -> list[Prediction]:
    """The most likely choice of each question, and how likely every choice is."""
    return [
        Prediction(question.choices[int(row.argmax())], dict(zip(question.choices, row.tolist(), strict=True)))
        for question, row in zip(questions, chances(model, questions), strict=True)
    ]


def chances(model: Model, questions: Sequence[Question]) -> list[np.ndarray]:
    """For each question, the probabilities of its choices."""
    head = model.head(Choice, "choose (adapt it first with 'unmask adapt --task choose')")
    require(bool(questions), "no questions to answer")
    found: dict[int, np.ndarray] = {}
    for chosen, batch, hidden in model.passes([question.readings for question in questions], keep=KEEP):
        rows = head.decode(hidden, batch).float().softmax(-1).cpu().numpy()  # type: ignore[operator]
        found |= {i: row[: len(questions[i].choices)] for i, row in zip(chosen.tolist(), rows, strict=True)}
    return [found[i] for i in range(len(questions))]


def right(model: Model, questions: Sequence[Question]) -> float:
    """The share of questions whose most likely choice is the right one."""
    best = [int(row.argmax()) for row in chances(model, questions)]
    return sum(question.label == i for question, i in zip(questions, best, strict=True)) / len(questions)
