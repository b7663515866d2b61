"""Re-rank: a model that reads a query and a text together gives each text a new score. Slower and better than cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unmask.errors import UserError, require
from unmask.infer.answer import answer, task_of_model
from unmask.infer.model import Model


def rerank(cross: Model, query: str, texts: Sequence[str]) -> list[float]:
    """The score of each text for a query, from a model that reads both together."""
    try:
        found = answer(cross, [(query, text) for text in texts]).answers
        return relevance(cross, found)
    except UserError as error:
        raise UserError(
            "{folder} cannot re-rank: {error}; re-rank with a run that was adapted to pairs of a query and a text, with "
            "'unmask adapt' on text_a, text_b and label (0, 1)",
            folder=cross.folder,
            error=error,
        ) from None


def relevance(cross: Model, answers: Sequence[Any]) -> list[float]:
    """How well each text answers its query, by the answers of a model to both."""
    task = task_of_model(cross)
    found = [task.relevance(one) for one in answers]
    known = [score for score in found if score is not None]
    require(len(known) == len(found), "it gives neither a score nor a label for a query and a text")
    return known
