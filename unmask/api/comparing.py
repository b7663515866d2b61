"""Compare recipes at equal budgets, from Python and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unmask import comparison, screen
from unmask.api.paths import Paths, listed
from unmask.errors import require
from unmask.progress import Progress, follow


def compare(
    recipes: Sequence[str], out: str | Path, *, data: Paths = (), tasks: str | Path | None = None, budget: str = "20m",
    seeds: int = 1, task_seeds: int = 3, size: str = "base", settings: Sequence[str] = (), sweep: Sequence[str] = (),
    sweep_by: str = "loss", ablate: bool = False, untrained: bool = True, at_once: int | None = None, device: str | None = None, overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Pretrain recipes with equal budgets, adapt each to every task, and write a report; returns `results.json`.

    `recipes`: names with settings, such as "roberta+hide.budget=0.4". `budget`: one or several, such as "5m,20m". `tasks`:
    a folder of labelled files, minimal pairs and texts. `sweep`: settings with several values, such as
    "optimise.rate=3e-4,7e-4", of which the best are found first for each recipe, by `sweep_by`: loss, or a task.
    `ablate`: compare each recipe also without each of its tracks that take turns, and with each alone. `untrained`: also adapt copies with random weights. `at_once`: runs that share the machine. The folder `out` may hold an
    earlier comparison: it goes on, and what is new is added."""
    require(bool(data), "no data given: name folders made by 'unmask prepare' with --data")
    if ablate:
        recipes = [one for text in recipes for one in comparison.ablations(text, size=size, settings=settings)]
    asked = tuple(
        comparison.parse_asked(text, size=size, settings=settings, budgets=comparison.budgets(budget), seeds=seeds)
        for text in recipes
    )
    request = comparison.Request(
        tuple(str(Path(one).absolute()) for one in listed(data)), asked, str(Path(tasks).absolute()) if tasks else None, task_seeds, tuple(sweep), sweep_by,
        device, untrained,
    )  # fmt: skip
    records = comparison.compare(request, Path(out), at_once=at_once, overwrite=overwrite, stop=stop)
    found: dict[str, Any] = follow(records, progress, screen.comparing)["results"]
    return found


def compare_report(out: str | Path) -> dict[str, Any]:
    """Write the report and the results of a comparison again from what was measured; returns the results."""
    return comparison.report(Path(out))
