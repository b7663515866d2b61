"""Validation: the losses on held-out text, and whether the vectors of different tokens still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from unmask import curves
from unmask.batch import Batch
from unmask.pretraining.collapse import base_loss
from unmask.recipe import Recipe
from unmask.system import objectives, weights
from unmask.train import Trainer


def validator(trainer: Trainer, held: list[Batch], recipe: Recipe) -> Callable[[], dict[str, float]]:
    """Returns a function that computes the held-out losses with fixed masks. `loss` is their weighted sum, `score` is -loss;
    `base_NAME` is the loss of a constant answer, for a yes/no objective."""
    weights = _last_weights(recipe) | {name: 0.0 for name, part in objectives(recipe).items() if part.penalty}

    @trainer.plainly()
    def validate() -> dict[str, float]:
        totals: dict[str, Any] = {}
        scales: dict[str, float] = {}
        positive: dict[str, Any] = {}
        memory = None
        for batch in held:
            prepared, _ = trainer.system.hide(batch.to(trainer.machine.device))
            with trainer.machine.autocast():
                losses, memory = trainer.system.step(prepared, memory if _continues(batch) else None)
            for name, loss in losses.items():
                total, count = totals.get(name, (0.0, 0.0))
                totals[name] = (total + loss.total, count + loss.count)
                scales[name] = 1.0 if loss.scale is None else float(loss.scale)
                if loss.positive is not None:
                    positive[name] = positive.get(name, 0.0) + loss.positive
        means = {name: float(total) / max(1.0, float(count)) for name, (total, count) in totals.items()}
        spread = _spread(trainer, held[0])
        score = -sum(mean * weights.get(name, 1.0) * scales[name] for name, mean in means.items())
        losses = {f"loss_{name}": mean for name, mean in means.items()}
        bases = {f"base_{n}": base_loss(float(yes), max(1.0, float(totals[n][1]))) for n, yes in positive.items()}
        return {"score": score, "loss": -score, "spread": spread} | losses | bases

    return validate


def about_validation(held: list[Batch], recipe: Recipe) -> Iterator[str]:
    """A notice if nothing is held out, or nothing for some of the tracks that take turns."""
    if not held:
        yield "there is no validation, because too little text was held out when the data was prepared"
    elif recipe.takes_turns:
        there = {name for batch in held for name, _ in batch.tracks}
        lacking = [name for name, track in recipe.all_tracks().items() if track.share and name not in there]
        if lacking:
            yield (
                f"the held-out loss is without the tracks {', '.join(lacking)}: too little is held out for their rows; prepare the "
                "text with a larger --holdout, or give labelled examples a dev file"
            )


def _continues(batch: Batch) -> bool:
    """Whether the rows of a batch continue those of the batch before."""
    begins = batch.per_row.get("begins")
    return begins is not None and not bool(begins.all())


def _last_weights(recipe: Recipe) -> dict[str, float]:
    """The weight of each loss at the end of training. They are fixed, so that scores can be compared over the whole run."""
    return {name: curves.at(weight, 1.0) for name, weight in weights(recipe, recipe.schedule[-1]).items()}


def _spread(trainer: Trainer, batch: Batch) -> float:
    """How much the vectors of different tokens differ: 0 if all are the same, near 1 if they have nothing in common."""
    prepared, _ = trainer.system.hide(batch.to(trainer.machine.device))
    with trainer.machine.autocast():
        vectors = trainer.system.look(prepared).last[prepared.real].float()
    return float((vectors - vectors.mean(0)).norm() / vectors.norm().clamp(min=1e-9))
