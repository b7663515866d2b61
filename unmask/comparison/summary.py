"""The results of a comparison: every run with its cost and scores, means with intervals, differences, changes of rank."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from unmask.comparison.estimates import Estimate, Scores, difference, estimate
from unmask.comparison.job import CONTROLS, RUNS
from unmask.comparison.request import Job, Request
from unmask.comparison.state import State
from unmask.text.atomic_write import drafted
from unmask.train import Budget, log

RESULTS = "results.json"
HELD_OUT = "held-out loss"  # the name of the loss among the tasks; it is compared with itself only


def write_results(folder: Path, request: Request, state: State) -> dict[str, Any]:
    """Write `results.json`; returns its content."""
    runs = [_run(folder, job, state.results.get(job.name, {})) for _, job in state.compared]
    controls = {name: _controls(runs, name) for name in CONTROLS}
    results = {
        "request": asdict(request),
        "machine": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "tasks": _tasks(runs),
        "entries": [_entry(one.entry.name, state) for one in request.asked],
        "runs": runs,
        **controls,
        "summary": list(_summary(request, runs, controls)),
        "tuning": [_run(folder, job, state.results.get(job.name, {})) for job in _sweeps(state)],
    }
    results["ranking"] = list(ranking(results))
    with drafted(folder / RESULTS) as draft:
        draft.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return results


def _sweeps(state: State) -> list[Job]:
    return [job for sweep in state.sweeps.values() for job in sweep.runs]


def _run(folder: Path, job: Job, result: dict[str, Any]) -> dict[str, Any]:
    """A run with what is known of it, unfinished ones too."""
    state = "waiting" if not result else "failed" if result["error"] else "done" if result["done"] else "unfinished"
    measured = result.get("pretraining", {})
    per_token = measured["flops"] / measured["tokens"] if measured else 0.0
    records = [record for record in log.read(folder / RUNS / job.name) if "validation_loss" in record]
    curve = [[r["tokens"], r["seconds"], r["tokens"] * per_token, r["validation_loss"]] for r in records if measured]
    empty: dict[str, Any] = {
        "scores": {},
        **{name: {} for name in CONTROLS},
        "skipped": {},
        "notices": [],
        "commands": [],
        "error": None,
    }
    kept = {name: result.get(name, value) for name, value in empty.items()}
    return {"entry": job.entry.name, "settings": list(job.entry.settings), "budget": job.budget, "seed": job.seed,
            "name": job.name, "state": state, **measured, **kept, "curve": curve}  # fmt: skip


def _entry(name: str, state: State) -> dict[str, Any]:
    """An entry: its recipe and settings, and what tuning cost."""
    sweep = state.sweeps[name]
    entry = sweep.entry or next(one.entry for one in state.request.asked if one.entry.name == name)
    spent = [state.results.get(job.name, {}).get("pretraining", {}) for job in sweep.runs]
    cost = {key: sum(one.get(key, 0) for one in spent) for key in ("seconds", "tokens", "flops")}
    return {"name": name, "recipe": entry.recipe, "size": entry.size, "variant": entry.variant,
            "settings": list(entry.settings), "tuning": {"runs": len(spent), **cost, "error": sweep.error}}  # fmt: skip


def _tasks(runs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tasks that any run has a score of, with the name of the score and whether more is better."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for task, scores in run["scores"].items():
            for one in scores.values():
                found.setdefault(task, {"measure": one["measure"], "higher": one["higher"]})
    return found


def _controls(runs: list[dict[str, Any]], name: str) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of the copies that have learned nothing, by entry and task."""
    return {
        run["entry"]: {task: {seed: one["score"] for seed, one in scores.items()} for task, scores in run[name].items()}
        for run in runs
        if run[name]
    }  # fmt: skip


def scores_of(runs: list[dict[str, Any]], entry: str, budget: str, task: str) -> Scores:
    """The scores of an entry by pretraining seed and adapting seed; the held-out loss is a task too."""
    found: dict[int, dict[int, float]] = {}
    for run in runs:
        if (run["entry"], run["budget"]) != (entry, budget):
            continue
        if task == HELD_OUT and run.get("held_out_loss") is not None:
            found[run["seed"]] = {0: run["held_out_loss"]}
        elif run["scores"].get(task):
            found[run["seed"]] = {int(seed): one["score"] for seed, one in run["scores"][task].items()}
    return found


def _summary(request: Request, runs: list[dict[str, Any]], controls: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each entry, budget and task: mean and interval, the controls, the gain over the untrained copy, and the
    difference to the first entry with the same budget."""
    first = request.asked[0].entry.name
    for asked, task in itertools.product(request.asked, (HELD_OUT, *_tasks(runs))):
        for budget in asked.budgets:
            name = asked.entry.name
            scores = scores_of(runs, name, budget, task)
            if not scores:
                continue
            same, start = (_by_seed(controls[control].get(name, {}).get(task)) for control in CONTROLS)
            base = scores_of(runs, first, budget, task) if task != HELD_OUT and name != first else {}
            yield {
                "entry": name, "budget": budget, "task": task, **_plain(estimate(scores)),
                "untrained": estimate({0: same}).mean if same else None,
                "start": estimate({0: start}).mean if start else None,
                "gain": _plain(difference(scores, dict.fromkeys(scores, same))) if same else None,
                "difference": _plain(difference(scores, base)) if base else None,
            }  # fmt: skip


def _by_seed(control: dict[str, float] | None) -> dict[int, float]:
    return {int(seed): score for seed, score in (control or {}).items()}


def _plain(found: Estimate | None) -> Any:
    return None if found is None else asdict(found) | {"differs": found.differs}


def ranking(results: dict[str, Any]) -> Iterator[str]:
    """A sentence for each pair of entries whose order changes with the budget."""
    for task, about in results["tasks"].items():
        rows = [row for row in results["summary"] if row["task"] == task]
        budgets = sorted({row["budget"] for row in rows}, key=lambda budget: Budget.parse(budget).amount)
        names = list(dict.fromkeys(row["entry"] for row in rows))
        for one, other in itertools.combinations(names, 2):
            signs = []
            for budget in budgets:
                a, b = (scores_of(results["runs"], name, budget, task) for name in (one, other))
                found = difference(a, b) if a and b else None
                if found is not None and found.mean:
                    signs.append((budget, (found.mean > 0) == about["higher"], found))
            for (before, led, first), (after, leads, second) in itertools.pairwise(signs):
                if led != leads:
                    winner, loser = (one, other) if leads else (other, one)
                    yield f"{task}: {loser} is ahead with {before}, {winner} with {after}{_doubt(first, second)}"


def _doubt(*differences: Estimate) -> str:
    """What speaks against a change of order."""
    if any(found.of != "pretraining seeds" for found in differences):
        return "; with one pretraining seed this may be chance"
    return "" if all(found.differs for found in differences) else "; the difference is within the noise of the seeds"
