"""Compare recipes at equal budgets, from Python and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask import comparison, screen
from unmask.api.from_text import Reading, check_text, data_to_compare, is_text, reading_of
from unmask.api.paths import Paths, listed
from unmask.api.stands_for import options
from unmask.errors import require
from unmask.pretraining.mixture import weighed
from unmask.progress import Progress, follow


def compare(
    recipes: Sequence[str], out: str | Path, *, data: Paths = (), tasks: str | Path | None = None, budget: str = "20m",
    seeds: int = 1, task_seeds: int = 3, size: str = "base", settings: Sequence[str] = (), sweep: Sequence[str] = (),
    sweep_by: str = "loss", ablate: bool = False, untrained: bool = True, at_once: int | None = None, device: str | None = None, overwrite: bool = False,
    tokenizer: str | Path | None = None, lexicon: Paths = (), graph: str | Path | None = None, lines: bool = False,
    encoding: str | None = None, holdout: float | None = None, stop: Callable[[], bool] = lambda: False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Pretrain recipes with equal budgets, adapt each to every task, and write a report; returns `results.json`.

    `data`: folders made by `unmask.prepare`, or text, which is prepared for each recipe with a tokenizer of its own kind, as
    `unmask.pretrain` does. `tokenizer`: one for all recipes instead. `lexicon`, `graph`, `lines`, `encoding`, `holdout`: how text
    is read, as for `unmask.pretrain`; a lexicon or a graph is read for the recipes that need it.

    `recipes`: names with settings, such as "roberta+hide.budget=0.4". `budget`: one or several, such as "5m,20m". `tasks`:
    a folder of labelled files, minimal pairs and texts. `sweep`: settings with several values, such as
    "optimise.rate=3e-4,7e-4", of which the best are found first for each recipe, by `sweep_by`: loss, or a task.
    `ablate`: compare each recipe also without each of its tracks that take turns, and with each alone. `untrained`: also adapt copies with random weights, and copies after one step. `at_once`: runs that share the machine. The folder `out` may hold an
    earlier comparison: it goes on, and what is new is added."""
    given = listed(data)
    require(
        bool(given),
        "no data given: name text (files, folders or globs), or folders made by 'unmask prepare', with --data",
    )
    if ablate:
        recipes = [one for text in recipes for one in comparison.ablations(text, size=size, settings=settings)]
    asked = tuple(
        comparison.parse_asked(text, size=size, settings=settings, budgets=comparison.budgets(budget), seeds=seeds)
        for text in recipes
    )
    reading = Reading(
        Path(tokenizer).absolute() if tokenizer else None,
        tuple(Path(one).absolute() for one in listed(lexicon)),
        Path(graph).absolute() if graph else None,
        lines,
        encoding,
        holdout,
    )
    texts = is_text(given)
    require(
        texts or not reading.given,
        "--{option} says how text is read, but no text is given: leave --{option} out",
        option=" and --".join(reading.given),
    )
    request = comparison.Request(
        tuple(map(_absolute, given)), asked, str(Path(tasks).absolute()) if tasks else None, task_seeds, tuple(sweep), sweep_by,
        device, untrained,
    )  # fmt: skip
    records = _compared(request, Path(out), reading if texts else None, at_once=at_once, overwrite=overwrite, stop=stop)
    found: dict[str, Any] = follow(records, progress, screen.comparing)["results"]
    return found


def _absolute(data: str | Path) -> str:
    """The argument with an absolute path: the runs of a comparison have other working folders later."""
    path, _ = weighed(str(data))
    return str(Path(path).absolute()) + str(data)[len(path) :]


def _compared(
    request: comparison.Request, out: Path, reading: Reading | None, *, at_once: int | None, overwrite: bool, stop: Callable[[], bool]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Prepare text for every entry, also for those of an earlier command, and compare them. `reading`: None: the data is prepared."""
    if reading is not None:
        request = comparison.with_earlier(request, out, overwrite=overwrite)
        request = yield from _prepared(request, reading, stop)
    yield from comparison.compare(request, out, at_once=at_once, overwrite=overwrite, stop=stop)


def _prepared(
    request: comparison.Request, reading: Reading, stop: Callable[[], bool]
) -> Generator[dict[str, Any], None, comparison.Request]:
    """The request, with the prepared data of every entry."""
    comparison.check_entries([one.entry for one in request.asked])
    recipes = [one.entry.made() for one in request.asked]
    readings = [reading_of(recipe, reading) for recipe in recipes]
    unread = set(reading.given).difference(*(one.given for one in readings))
    require(
        not unread,
        "--{option} has no effect, because no recipe of this comparison needs it: leave it out",
        option=" and --".join(sorted(unread)),
    )
    for recipe, own in zip(recipes, readings, strict=True):
        check_text(recipe, request.data, own, None)
    asked = []
    for one, recipe, own in zip(request.asked, recipes, readings, strict=True):
        folder = yield from data_to_compare(recipe, request.data, own, stop=stop, name=one.entry.name)
        words = options({f"--{name}": getattr(own, name) for name in own.given})
        asked.append(replace(one, prepared=comparison.Prepared(str(folder), tuple(words))))
    return replace(request, asked=tuple(asked))


def compare_report(out: str | Path) -> dict[str, Any]:
    """Write the report and the results of a comparison again from what was measured; returns the results."""
    return comparison.report(Path(out))
