"""Collapse: find, at each validation, a network that gives all tokens the same vector or the same answer, and say what helps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unmask import curves
from unmask.recipe import Recipe
from unmask.system import predictions, weights

SAME_VECTORS = 0.1  # below this spread, the vectors of different tokens are nearly the same
SAME_ANSWERS = 0.99  # from this share of the loss of a constant answer on, the answers are nearly the same
PATIENCE = 0.2  # share of the training in which constant answers are normal: the network has just begun to learn
_BASE = "validation_base_"


def base_loss(positive: float, count: float) -> float:
    """The loss of the best constant answer to a yes/no question: the entropy of its base rate."""
    shares = [share for share in (positive / count, 1 - positive / count) if share > 0]
    return -sum(share * math.log(share) for share in shares)


def collapses(record: Mapping[str, Any], recipe: Recipe) -> dict[str, str]:
    """Notices about a log record, each under the name of the number that it is about; empty if nothing has collapsed."""
    spread = record.get("validation_spread", 1.0)
    if spread < SAME_VECTORS:
        return {"spread": _about_vectors(record, spread, recipe)}
    names = [key.removeprefix(_BASE) for key in record if key.startswith(_BASE)]
    late = [name for name in names if record["progress"] >= _begins(recipe, name) + PATIENCE]
    return {n: _about_answers(record, n, recipe) for n in late if record[f"validation_loss_{n}"] > _limit(record, n)}


def _limit(record: Mapping[str, Any], name: str) -> float:
    return SAME_ANSWERS * float(record[_BASE + name])


def _begins(recipe: Recipe, loss: str) -> float:
    """The progress at which a network begins to learn from a loss: its rate and the weight of the loss are over 0."""
    asked = recipe.system.asks(predictions(recipe))
    rates = [recipe.system.rates[network] for network, parts in asked.items() if loss in parts]
    ends = [sum(stage.share for stage in recipe.schedule[: i + 1]) for i in range(len(recipe.schedule))]
    given = [weights(recipe, stage).get(loss, 1.0) for stage in recipe.schedule]
    for done in (i / 100 for i in range(100)):
        weight = given[min(sum(done >= end for end in ends), len(given) - 1)]
        if all(curves.at(value, done) > 0 for value in (weight, *rates)):
            return done
    return 1.0


def _about_vectors(record: Mapping[str, Any], spread: float, recipe: Recipe) -> str:
    return (
        f"the network gives all tokens nearly the same vector (spread {spread:.2f}) after {record['progress']:.0%} of the "
        f"training: it has hardly begun to learn, or has collapsed: give a larger budget, {_advice(recipe)}"
    )


def _about_answers(record: Mapping[str, Any], name: str, recipe: Recipe) -> str:
    return (
        f"the network gives all tokens nearly the same answer for {name!r} after {record['progress']:.0%} of the training (loss "
        f"{record[f'validation_loss_{name}']:.3f}, and {record[_BASE + name]:.3f} for a constant answer): it has hardly begun to "
        f"learn, or has collapsed: {_advice(recipe)}"
    )


def _advice(recipe: Recipe) -> str:
    """What may help: settings of the system, if its networks have their own rates."""
    gentler = recipe.system.gentler
    return " or ".join(f"set {s}" for s in gentler) + ", or raise optimise.warmup" if gentler else (
        "lower optimise.rate, or raise optimise.warmup"
    )  # fmt: skip
