"""Find a learning rate: train a few steps with a rate that grows, and see where the loss falls (Smith 2015)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from unmask import curves, html_page
from unmask.adapt import new_model
from unmask.adapt.epochs import packing_of
from unmask.adapt.special_tokens import with_special_tokens
from unmask.axes import Task
from unmask.data.examples import Examples
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import laid_out
from unmask.system import weights
from unmask.train import Trainer, training_machine

LOW, HIGH = 1e-7, 1e-1  # the first and the last rate
FEWEST = 10  # steps
SMOOTH = 0.9  # share of the mean loss that a step keeps
WORSE = 3.0  # stop when the loss is this many times the lowest one
SAFE = 10.0  # the suggestion is so many times below the rate with the lowest loss


def trace_rates(base: Model, examples: Sequence[Any], task: Task, *, steps: int, seed: int) -> Iterator[dict[str, Any]]:
    """Train a copy of a model with growing rates; yields the rate and the mean loss of each step. Nothing is saved."""
    require(steps >= FEWEST, "a rate needs {fewest} steps or more to be found, got {steps}", fewest=FEWEST, steps=steps)
    task = task.learn(examples)
    base = with_special_tokens(base, task, None)
    recipe = task.recipe(base).replace(tune=None)
    model = new_model(base, recipe, base.folder, seed, fresh=False)
    assert recipe.task is not None
    rows, _ = laid_out(model, recipe.task.lay_out(examples))
    plan = recipe.task.hyperparameters(base.recipe)
    trainer = Trainer(model.system, recipe.optimise, training_machine(model.device), seed)
    source = Examples(rows, seed, packing=packing_of(recipe, rows))
    losses = {name: curves.at(weight, 0.0) for name, weight in weights(recipe, recipe.schedule[0]).items()}
    model.system.train()
    mean, lowest = 0.0, math.inf
    for step in range(1, steps + 1):
        rate = LOW * (HIGH / LOW) ** ((step - 1) / max(1, steps - 1))
        found = trainer.gradients([source.batch(min(plan.examples, len(rows)))], losses, step)
        mean = SMOOTH * mean + (1 - SMOOTH) * float(found["minimised"])
        smooth = mean / (1 - SMOOTH**step)
        if not math.isfinite(smooth) or smooth > WORSE * lowest:
            return
        lowest = min(lowest, smooth)
        yield {"steps": step, "steps_total": steps, "rate": rate, "loss": smooth}
        torch.nn.utils.clip_grad_norm_(model.system.parameters(), 1.0)
        for group in trainer.optimiser.param_groups:
            group["lr"] = rate * group["scale"]
        trainer.optimiser.step()


def suggested(points: Sequence[dict[str, Any]]) -> float:
    """A tenth of the rate with the lowest loss, with one digit."""
    require(bool(points), "the loss of the first step is not a number: no rate can be found for this model")
    best = min(points, key=lambda point: point["loss"])["rate"] / SAFE
    return float(f"{best:.0e}")


def draw_rates(points: Sequence[dict[str, Any]], out: Path, title: str) -> dict[str, Any]:
    """Write rates.json and report.html; returns the points and the suggestion."""
    found = {"suggested": suggested(points), "points": list(points)}
    out.mkdir(parents=True, exist_ok=True)
    (out / "rates.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    line = html_page.ReportCurve("mean loss", tuple((point["rate"], point["loss"]) for point in points))
    html_page.page(out / "report.html", title, [
        html_page.paragraph(
            f"The rate grows with every step. The suggestion is a tenth of the rate with the lowest loss: --set rate={found['suggested']:g}."
        ),
        html_page.curves([line], "rate", "mean loss of the last steps", log_x=True),
    ])  # fmt: skip
    return found
