"""What a pipeline found: the stages of each variant, their scores, and what each stage was worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask.comparison.estimates import Estimate, Scores, difference, estimate
from unmask.pipeline.description import UNTRAINED, Pipeline
from unmask.pipeline.execute import finished
from unmask.pipeline.work import Work

STAGE_COLUMNS = ["stage", "what it does", "from", "budget", "steps", "tokens", "time", "held-out loss", "score", "run"]
WORTH_COLUMNS = ["without", "task", "all stages", "without it", "what it was worth", ""]


@dataclass(frozen=True)
class Variant:
    """A pipeline with or without some stages, and its work for every seed."""

    name: str
    without: (
        str | None
    )  # the stage that is left out to see what it was worth; None: this is what others are compared with
    pipeline: Pipeline
    works: tuple[Work, ...]


def results_of(variants: Sequence[Variant]) -> dict[str, Any]:
    """The content of results.json."""
    found = [_variant(variant) for variant in variants]
    return {"format": 1, "variants": found, "worth": list(_worth(found))}


def _variant(variant: Variant) -> dict[str, Any]:
    runs = [_run(work) for work in variant.works if work.trains]
    return {"name": variant.name, "without": variant.without, "budgets": variant.pipeline.budgets, "runs": runs,
            "scores": _scores(runs)}  # fmt: skip


def _run(work: Work) -> dict[str, Any]:
    result = finished(work)
    about = {"stage": work.stage, "does": work.does, "from": work.start, "budget": work.budget, "seed": work.seed, "trial": work.trial,
             "run": str(work.out), "finished": result is not None, "commands": [call.command for call in work.calls]}  # fmt: skip
    return about | (result or {})


def _scores(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The scores of each task by seed and by training, with their mean and interval. A task has the name of its stage; if a
    stage has several, it is STAGE/TASK."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for task, score in run.get("scores", {}).items():
            one = found.setdefault(
                f"{run['stage']}/{task}" if task else run["stage"], {"measure": score["measure"], "by_seed": {}}
            )
            one["by_seed"].setdefault(run["seed"], {})[run["trial"]] = score["score"]
    return {name: one | plain(estimate(one["by_seed"])) for name, one in found.items()}


def plain(found: Estimate | None) -> dict[str, Any]:
    return {} if found is None else asdict(found) | {"differs": found.differs}


def _worth(variants: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For each stage that was left out and each score: with it, without it, and the difference over the seeds of both."""
    whole = variants[0]
    for variant in variants[1:]:
        for task, scores in whole["scores"].items():
            other = variant["scores"].get(task)
            if other is None:
                continue
            both = difference(_by_seed(scores), _by_seed(other))
            yield {"stage": variant["without"], "task": task, "measure": scores["measure"], "with": _short(scores),
                   "without": _short(other), "difference": plain(both), "same_budget": bool(variant["budgets"])}  # fmt: skip


def _by_seed(scores: Mapping[str, Any]) -> Scores:
    found: Scores = scores["by_seed"]
    return found


def _short(scores: Mapping[str, Any]) -> dict[str, Any]:
    return {name: scores[name] for name in ("mean", "low", "high", "of", "runs")}


def stage_rows(variant: Mapping[str, Any]) -> Iterator[list[str]]:
    """A row for each stage: the numbers of the first seed."""
    names = list(dict.fromkeys(run["stage"] for run in variant["runs"] if run["stage"] != UNTRAINED))
    for name in names:
        run = next(run for run in variant["runs"] if run["stage"] == name)
        scores = {task: one for task, one in variant["scores"].items() if task.partition("/")[0] == name}
        yield [
            name, run["does"], run["from"] or "-", run["budget"] or "-", _number(run.get("steps"), ","), _number(run.get("tokens"), ","),
            f"{run['seconds']:,.0f} s" if "seconds" in run else "-", _number(run.get("held_out_loss"), ".3f"),
            ", ".join(f"{task.partition('/')[2]} {spread(one)} ({said(one)})".strip() for task, one in scores.items()) or "-",
            Path(run["run"]).name if run["finished"] else "not finished",
        ]  # fmt: skip


def worth_rows(results: Mapping[str, Any]) -> Iterator[list[str]]:
    """What each stage was worth, in points of a hundred."""
    for row in results["worth"]:
        seen = row["difference"]
        doubt = "one run" if seen["low"] is None else "" if seen["differs"] else "may be chance"
        yield [row["stage"], f"{row['task']} ({said(row)})", spread(row["with"]), spread(row["without"]),
               spread(seen, sign=True), doubt]  # fmt: skip


def notes(results: Mapping[str, Any]) -> Iterator[str]:
    """What to know about the table of what stages were worth."""
    if any(row["difference"]["low"] is None for row in results["worth"]):
        yield "one run of each variant may differ by chance: --seeds 3 gives an interval"
    for stage in dict.fromkeys(row["stage"] for row in results["worth"] if not row["same_budget"]):
        yield f"without {stage}, no stage that pretrains is left, so its budget is not used"


def said(row: Mapping[str, Any]) -> str:
    """The name of a score in words."""
    return str(row["measure"]).replace("_", " ")


def spread(row: Mapping[str, Any], *, sign: bool = False) -> str:
    """A mean in %, with half of its 95% interval."""
    half = "" if row["low"] is None else f" ± {100 * (row['high'] - row['mean']):.1f}"
    return f"{100 * row['mean']:{'+' if sign else ''}.1f}{half}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
