"""Short budgets: use smaller steps and shorter rows, if the recipe allows it, so that a short run still learns."""

from __future__ import annotations

import dataclasses
import math

from unmask.errors import require
from unmask.recipe import Recipe
from unmask.train import Budget

ENOUGH_STEPS = 5_000  # with fewer steps, more and smaller ones learn more from the same text (docs/results.md)
TOO_FEW_STEPS = 200  # with fewer steps, a network with random weights learns nothing
SHORT_ROWS = 128  # tokens
SMALL_STEP = {"cpu": 1_024, "cuda": 8_192}  # tokens; smaller steps are too noisy, or no faster on a GPU


def shrunk(recipe: Recipe, steps: int, device: str) -> Recipe:
    """The recipe with smaller steps if it has too few; the same object if it has enough steps or must not change."""
    tokens = max(SMALL_STEP[device.split(":")[0]], recipe.step_tokens * steps / ENOUGH_STEPS)
    if not recipe.shrink or steps >= ENOUGH_STEPS or tokens >= recipe.step_tokens:
        return recipe
    shares = [track.share for track in recipe.all_tracks().values() if track.share > 0]
    fewest = 1 if recipe.takes_turns else math.ceil(1 / min(shares) - 1e-9)  # every track of a batch needs a row
    stages = []
    for stage in recipe.schedule:
        length = min(stage.length, SHORT_ROWS)
        rows = max(fewest, min(round(tokens / length), stage.rows * stage.length // length))
        stages.append(dataclasses.replace(stage, length=length, rows=rows))
    return recipe.replace(schedule=tuple(stages), shrink=False)


def about_shrinking(before: Recipe, now: Recipe, steps: int) -> str:
    """A notice: what was changed, and how to keep the values of the recipe."""
    first = now.schedule[0]
    shorter = f", and the model reads texts of up to {now.longest} tokens" if now.longest < before.longest else ""
    return (
        f"this budget allows {steps:,} steps of {before.step_tokens:,.0f} tokens; smaller ones learn more from it, so a step has "
        f"{first.rows} rows of {first.length} tokens{shorter}; --set shrink=false keeps the steps of the recipe"
    )


def check_one_step(recipe: Recipe, limit: Budget, step_flops: float) -> None:
    """Refuse a budget that is smaller than one step: the step would be taken all the same, and cost more than was given."""
    costs = {"tokens": (recipe.step_tokens, "tok"), "steps": (1.0, "steps"), "flops": (step_flops, "flop")}
    cost, unit = costs.get(limit.kind, (0.0, ""))
    least = math.ceil(cost)
    require(
        limit.amount >= cost,
        "one step of {name} {size} takes {least}, which is more than the budget of {amount:g}{unit}: give at least "
        "--budget {least}",
        name=recipe.name,
        size=recipe.size,
        amount=limit.amount,
        unit=unit,
        least=f"{least}{unit}" if least < 1e6 else f"{least * 1.01:.2e}{unit}".replace("e+", "e"),
    )


def about_too_few(steps: int, seconds: float | None) -> str:
    """A notice about a run that is too short to learn anything."""
    advice = f"--budget {max(1, round(seconds * ENOUGH_STEPS / steps / 60))}m" if seconds else "a larger budget"
    return f"about {steps:,} steps are too few for a network with random weights to learn anything: give it {advice} or more"
