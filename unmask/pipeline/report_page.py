"""The report of a pipeline: one HTML page made from `results.json` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unmask import html_page
from unmask.comparison.report_page import SHARES
from unmask.pipeline.results import STAGE_COLUMNS, WORTH_COLUMNS, notes, stage_rows, worth_rows

REPORT = "report.html"


def write_report(folder: Path, results: dict[str, Any]) -> None:
    html_page.page(folder / REPORT, f"The pipeline {Path(results['file']).name}", list(_parts(results)))


def _parts(results: Mapping[str, Any]) -> Iterator[str]:
    whole, *others = results["variants"]
    yield html_page.paragraph(_about(results))
    if not results["finished"]:
        yield html_page.note("Not all stages are finished: run the same command again to continue.")
    if results["worth"]:
        yield html_page.heading("What each stage was worth")
        yield html_page.table(WORTH_COLUMNS, list(worth_rows(results)), texts=True)
        yield from (html_page.note(text[0].upper() + text[1:] + ".") for text in notes(results))
        yield html_page.paragraph(
            "In % points. Without a stage, its part of the budget goes to the other stages that pretrain, in proportion to "
            "their shares: all rows have the same total budget. Each stage that adapts has the same epochs everywhere."
        )
    yield from _bars(results)
    yield html_page.heading("Stages")
    yield html_page.table(STAGE_COLUMNS[:-1], [row[:-1] for row in stage_rows(whole)], texts=True)
    yield from _losses(whole)
    for variant in others:
        table = html_page.table(STAGE_COLUMNS[:-1], [row[:-1] for row in stage_rows(variant)], texts=True)
        yield html_page.folded(variant["name"], table)
    yield html_page.heading("The exact commands")
    for variant in results["variants"]:
        commands = list(dict.fromkeys([*results["made"], *(one for run in variant["runs"] for one in run["commands"])]))
        yield html_page.folded(variant["name"], html_page.commands(commands))


def _about(results: Mapping[str, Any]) -> str:
    network = f"{results['recipe']} {results['size']}".strip()
    seeds = "one seed" if results["seeds"] == 1 else f"{results['seeds']} seeds"
    budget = f", {results['budget']} of pretraining in each variant" if results["budget"] else ""
    return (
        f"{network or 'A run'}{budget}, {seeds}. Scores are in %; ± is half of the 95% interval, over the seeds of the whole "
        "pipeline if there are several, otherwise over the trainings of the last stage."
    )


def _bars(results: Mapping[str, Any]) -> Iterator[str]:
    """The scores of all variants, with a dot for each run. Only scores between 0 and 1 are drawn."""
    scores = results["variants"][0]["scores"]
    drawn = [task for task, one in scores.items() if one["measure"] in SHARES]
    if not results["worth"] or not drawn:
        return
    groups = []
    for task in drawn:
        found = {
            variant["name"]: tuple(
                score for one in variant["scores"][task]["by_seed"].values() for score in one.values()
            )
            for variant in results["variants"]
            if task in variant["scores"]
        }
        groups.append(html_page.Group(task, found))
    yield html_page.bars(groups, "score")


def _losses(variant: Mapping[str, Any]) -> Iterator[str]:
    """The loss, stage after stage."""
    lines, before = [], 0.0
    for run in variant["runs"]:
        points = run.get("curve") or []
        if run["seed"] == 0 and len(points) > 1:
            lines.append(html_page.ReportCurve(run["stage"], tuple((before + at, loss) for at, loss in points)))
            before += points[-1][0]
    if lines:
        yield html_page.heading("Loss")
        yield html_page.paragraph(
            "In training; of a stage that reads text, triples or examples in turn, on held-out ones. Only the points of one stage "
            "can be compared."
        )
        yield html_page.curves(lines, "seconds of training", "loss")
