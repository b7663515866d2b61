"""Re-rank: a model that reads a query and a text together gives each text a new score. Slower and better than cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unmask.errors import UserError
from unmask.infer.answer import answer
from unmask.infer.model import Model


def rerank(cross: Model, query: str, texts: Sequence[str]) -> list[float]:
    """The score of each text for a query, from a model that reads both together."""
    try:
        found = answer(cross, [(query, text) for text in texts]).answers
        return [_score(one, cross) for one in found]
    except UserError as error:
        raise UserError(
            "{folder} cannot re-rank: {error}; re-rank with a run that was adapted to pairs of a query and a text, with "
            "'unmask adapt' on text_a, text_b and label (0, 1)",
            folder=cross.folder,
            error=error,
        ) from None


def _score(one: Any, cross: Model) -> float:
    """The score of an answer; of an answer with labels, the probability of the last one, which must mean "yes"."""
    if hasattr(one, "score"):
        return float(one.score)
    if not hasattr(one, "probabilities"):
        raise UserError("it gives neither a score nor a label for a query and a text")
    return float(one.probabilities[cross.labels[-1]])
