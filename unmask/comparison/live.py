"""The table of a comparison while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask.comparison.job import RUNS
from unmask.comparison.request import Job
from unmask.comparison.state import State
from unmask.train import log

COLUMNS = ["entry", "budget", "seed", "state", "done", "tokens", "time", "loss", "scores"]


def rows(folder: Path, state: State, running: set[str]) -> Iterator[list[str]]:
    """A row for each run that is running, done or waiting; the runs of a sweep only while they run."""
    for sweep in state.sweeps.values():
        for job in sweep.runs:
            if job.name in running:
                yield _row(folder, job, state, "sweep")
    for _, job in state.compared:
        yield _row(folder, job, state, "running" if job.name in running else "")


def _row(folder: Path, job: Job, state: State, doing: str) -> list[str]:
    result = state.results.get(job.name, {})
    if not doing:
        doing = "failed" if result.get("error") else "done" if result.get("done") else "waiting"
    last = next(reversed(log.read(folder / RUNS / job.name)), None) if doing != "waiting" else None
    cells = [job.entry.name, job.budget, str(job.seed), doing]
    if last is None:
        return [*cells, "-", "-", "-", "-", str(result.get("error") or "")]
    loss = last.get("validation_loss", last["loss"])
    return [*cells, f"{100 * last['progress']:.0f}%", f"{last['tokens'] / 1e6:,.1f}M", f"{last['seconds']:,.0f} s",
            f"{loss:.3f}", result.get("error") or _scores(result)]  # fmt: skip


def _scores(result: dict[str, Any]) -> str:
    found = []
    for task, scores in result.get("scores", {}).items():
        values = [one["score"] for one in scores.values()]
        if values:
            found.append(f"{task} {sum(values) / len(values):.3f}")
    return ", ".join(found)
