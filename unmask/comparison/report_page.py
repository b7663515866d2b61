"""The report of a comparison: one HTML page made from `results.json` alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask import html_page
from unmask.comparison.job import CONTROLS
from unmask.comparison.summary import HELD_OUT
from unmask.train import Budget

REPORT = "report.html"
# what runs are drawn against: the place in a curve, the field of a run, the name on the axis
AXES = ((0, "tokens", "tokens"), (1, "seconds", "seconds of training"), (2, "flops", "operations"))
SHARES = (
    "accuracy",
    "mean_over_paradigms",
    "rouge_l",
    "f1",
    "micro_f1",
    "mrr",
)  # scores from 0 to 1, which are drawn as bars
MOST_BARS = 3  # entries that are drawn as bars
COLUMNS = ["entry", "budget", "runs", "at once", "time", "tokens", "operations", "memory", "held-out loss"]


def write_report(folder: Path, results: dict[str, Any]) -> None:
    html_page.page(folder / REPORT, title(results), list(_parts(results)))


def title(results: dict[str, Any]) -> str:
    number = len(results["entries"])
    return f"{number} recipes compared" if number != 1 else f"{results['entries'][0]['name']}, and its untrained copy"


def _parts(results: dict[str, Any]) -> Iterator[str]:
    request = results["request"]
    yield html_page.paragraph(
        f"Text: {', '.join(request['data'])}. Machine: {results['machine']}, torch {results['torch']}. Scores are means over "
        f"pretraining seeds and {request['task_seeds']} adapting seeds; ± is half of the 95% interval, over pretraining seeds "
        'if there are several, otherwise over adapting seeds. "Untrained" is the same network with random weights, adapted '
        'in the same way; "start" is the network after one step, with embeddings that start as word vectors counted in the text. '
        "Recipes hide and predict different things, so the held-out loss compares a recipe with itself only."
    )
    unfinished = [run for run in results["runs"] if run["state"] != "done"]
    if unfinished:
        yield html_page.note(
            f"{len(unfinished)} of {len(results['runs'])} runs are not finished; their rows are marked."
        )
    table, first = list(rows(results)), len(COLUMNS)
    if results["tasks"]:
        yield html_page.heading("Scores")
        yield html_page.table([*COLUMNS[:3], *_score_columns(results)], [[*row[:3], *row[first:]] for row in table])
    yield html_page.heading("Costs")
    yield html_page.table(COLUMNS, [row[:first] for row in table])
    for sentence in results["ranking"]:
        yield html_page.paragraph(f"The order changes with the budget. {sentence}.")
    for run in results["runs"]:
        if run["error"]:
            yield html_page.note(f"{run['entry']}, {run['budget']}, seed {run['seed']} failed: {run['error']}")
    for run in results["runs"]:
        for task, why in run["skipped"].items():
            yield html_page.note(f"{run['entry']}, {run['budget']}, seed {run['seed']} has no score for {task}: {why}")
    yield from _charts(results)
    yield from _tuning(results)
    yield html_page.heading("The exact commands")
    for run in results["runs"]:
        if run["commands"]:
            name = f"{run['entry']}, {run['budget']}, seed {run['seed']}"
            yield html_page.folded(
                name, html_page.commands(run["commands"]) + "".join(map(html_page.note, run["notices"]))
            )


def columns(results: dict[str, Any]) -> list[str]:
    """The columns of the table on the screen: costs, then scores."""
    return [*COLUMNS, *_score_columns(results)]


def _score_columns(results: dict[str, Any]) -> list[str]:
    """For each task its score, those of the copies that have learned nothing, and the difference to the first entry."""
    found = []
    for task in results["tasks"]:
        found += [task, *(name for name in CONTROLS if _has(results, task, name))]
        found += [f"to {results['entries'][0]['name']}"] if _has(results, task, "difference") else []
    return found


def _has(results: dict[str, Any], task: str, name: str) -> bool:
    return any(row[name] is not None for row in results["summary"] if row["task"] == task)


def rows(results: dict[str, Any]) -> Iterator[list[str]]:
    """A row for each entry and budget; costs are means over the runs that are done."""
    for entry, budget in dict.fromkeys((run["entry"], run["budget"]) for run in results["runs"]):
        runs = [run for run in results["runs"] if (run["entry"], run["budget"]) == (entry, budget)]
        known = [run for run in runs if "seconds" in run]
        summary = {row["task"]: row for row in results["summary"] if (row["entry"], row["budget"]) == (entry, budget)}
        cells = [entry, budget, _state(runs), *(_cost(known) if known else ["-"] * 5)]
        cells.append(spread(summary.get(HELD_OUT), percent=False))
        for task, about in results["tasks"].items():
            row, percent = summary.get(task), about["measure"] != "bits_per_byte"
            cells.append(spread(row, percent=percent))
            for name in CONTROLS:
                if _has(results, task, name):
                    control = row[name] if row else None
                    cells.append("-" if control is None else number(control, percent=percent))
            if _has(results, task, "difference"):
                found = row["difference"] if row else None
                cells.append("-" if found is None else spread(found, percent=percent, sign=True))
        yield cells


def _state(runs: list[dict[str, Any]]) -> str:
    done = sum(run["state"] == "done" for run in runs)
    others = [run["state"] for run in runs if run["state"] != "done"]
    return f"{done} of {len(runs)}" + (f", {', '.join(sorted(set(others)))}" if others else "")


def _cost(runs: list[dict[str, Any]]) -> list[str]:
    def mean(name: str) -> float:
        return float(sum(run[name] for run in runs) / len(runs))

    return [", ".join(sorted({str(run["at_once"]) for run in runs})), f"{mean('seconds'):,.0f} s", f"{mean('tokens') / 1e6:,.1f}M", f"{mean('flops'):.2g}".replace("e+", "e"),
            f"{max(run['peak_memory'] for run in runs) / 2**30:.1f} GiB"]  # fmt: skip


def spread(row: dict[str, Any] | None, *, percent: bool, sign: bool = False) -> str:
    """A mean with half of its interval."""
    if row is None:
        return "-"
    half = "" if row["low"] is None else f" ± {number(row['high'] - row['mean'], percent=percent)}"
    return number(row["mean"], percent=percent, sign=sign) + half


def number(value: float, *, percent: bool, sign: bool = False) -> str:
    form = "+" if sign else ""
    return f"{100 * value:{form}.1f}" if percent else f"{value:{form}.3f}"


def _charts(results: dict[str, Any]) -> Iterator[str]:
    names = [entry["name"] for entry in results["entries"]]
    longest = {name: _longest(results, name) for name in names}
    if any(longest.values()):
        yield html_page.heading("Held-out loss")
        yield html_page.row([
            html_page.curves([html_page.ReportCurve(name, _points(longest[name], place)) for name in names], about, "loss", key=False)
            for place, _, about in AXES
        ])  # fmt: skip
        yield html_page.keys(names)
    if len({row["budget"] for row in results["summary"]}) == 1:  # one point makes no curve
        yield from _bars(results)
        return
    for task, about in results["tasks"].items():
        yield html_page.heading(f"{task}: {about['measure'].replace('_', ' ')}")
        yield html_page.row([
            html_page.curves([html_page.ReportCurve(name, _scores(results, name, task, field)) for name in names], axis,
                          "score", log_x=True, dots=True, key=False)
            for _, field, axis in AXES
        ])  # fmt: skip
        yield html_page.keys(names)


def _bars(results: dict[str, Any]) -> Iterator[str]:
    """The scores of a single budget: a bar for each entry and its untrained copy, and a dot for each run."""
    groups = []
    for task, about in results["tasks"].items():
        if about["measure"] in SHARES and len(results["entries"]) <= MOST_BARS:
            groups.append(html_page.Group(task, dict(_dots(results, task))))
    if groups:
        yield html_page.heading("Scores of each run")
        yield html_page.bars(groups, "score; one dot per run")


def _dots(results: dict[str, Any], task: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    for entry in results["entries"]:
        name = entry["name"]
        runs = [run for run in results["runs"] if run["entry"] == name]
        yield name, tuple(one["score"] for run in runs for one in run["scores"].get(task, {}).values())
        for copy in CONTROLS:
            control = results[copy].get(name, {}).get(task)
            if control:
                yield f"{name}, {copy}", tuple(control.values())


def _longest(results: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The first run of an entry with its largest budget, of those that have a curve."""
    runs = [run for run in results["runs"] if run["entry"] == name and run["curve"]]
    return max(runs, key=lambda run: (Budget.parse(run["budget"]).amount, -run["seed"]), default=None)


def _points(run: dict[str, Any] | None, place: int) -> tuple[tuple[float, float], ...]:
    return tuple((point[place], point[3]) for point in run["curve"]) if run else ()


def _scores(results: dict[str, Any], name: str, task: str, field: str) -> tuple[tuple[float, float], ...]:
    """The mean score of an entry at each budget, against the mean cost of its runs."""
    found = []
    for row in results["summary"]:
        if (row["entry"], row["task"]) == (name, task):
            runs = [r for r in results["runs"] if (r["entry"], r["budget"]) == (name, row["budget"]) and field in r]
            found.append((sum(run[field] for run in runs) / len(runs), row["mean"]))
    return tuple(sorted(found))


def _tuning(results: dict[str, Any]) -> Iterator[str]:
    if not results["request"]["sweep"]:
        return
    yield html_page.heading("What tuning cost")
    cells = [
        [entry["name"], " ".join(entry["settings"]) or "-", entry["tuning"]["runs"], f"{entry['tuning']['seconds']:,.0f} s",
         f"{entry['tuning']['tokens'] / 1e6:,.1f}M", f"{entry['tuning']['flops']:.2g}", entry["tuning"]["error"] or "-"]
        for entry in results["entries"]
    ]  # fmt: skip
    yield html_page.table(["entry", "settings", "runs", "time", "tokens", "operations", "problem"], cells)
    runs = [[run["name"].removeprefix("sweep/"), run["state"], _loss(run)] for run in results["tuning"]]
    yield html_page.folded("The runs of the sweep", html_page.table(["run", "state", "held-out loss"], runs))


def _loss(run: dict[str, Any]) -> str:
    return f"{run['held_out_loss']:.3f}" if run.get("held_out_loss") is not None else run["error"] or "-"
