"""Re-rank: a model that reads a query and a text together gives each text a new score. Slower and better than cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unmask.errors import UserError
from unmask.infer.answer import answer, task_of_model
from unmask.infer.model import Model


def rerank(cross: Model, query: str, texts: Sequence[str]) -> list[float]:
    """The score of each text for a query: the probability of the last label, which must mean that the text answers it."""
    task: Any = task_of_model(cross)
    pairs = getattr(task, "texts", None) == 2 and len(cross.labels) >= 2
    if not pairs:
        raise UserError(
            "{folder} cannot re-rank: it must read pairs of a query and a text, and give a label; adapt a model with 'unmask "
            "adapt' on text_a (the query), text_b (the text) and label (0, 1)",
            folder=cross.folder,
        )
    found = answer(cross, [(query, text) for text in texts]).answers
    return [float(one.probabilities[cross.labels[-1]]) for one in found]
