"""Where a comparison stands: what was measured, and which jobs can be run now. It is read from the folder each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.comparison.entry import Entry
from unmask.comparison.job import read_result
from unmask.comparison.request import Asked, Job, Request
from unmask.comparison.task_files import TaskFiles
from unmask.comparison.tuning import Tuned, tuned


@dataclass(frozen=True)
class State:
    request: Request
    sweeps: dict[str, Tuned]  # by the name of the entry
    compared: tuple[tuple[Asked, Job], ...]  # the runs that are compared, of all entries whose settings are known
    results: dict[str, dict[str, Any]]  # what was measured, by the name of the job
    waiting: tuple[Job, ...]  # the jobs that can be run now
    controls: frozenset[str]  # the jobs that also adapt copies with random weights, one of each entry

    @property
    def best(self) -> dict[Entry, int]:
        """The entries whose sweep is done, with their best settings, and the number of runs that it took."""
        found = self.sweeps.values() if self.request.sweep else ()
        return {sweep.entry: len(sweep.runs) for sweep in found if sweep.entry is not None}


def state_of(
    folder: Path, request: Request, tasks: Sequence[TaskFiles], *, tried: frozenset[str] = frozenset(), ended: bool = False,
    any_recipe: bool = False,
) -> State:  # fmt: skip
    """`tried`: jobs that this command has run: if they failed, that stands. Others that failed wait to be run again.
    `ended`: nothing more is run, and a report is written: what was measured stands, also if the data is gone.
    `any_recipe`: it stands also if the recipe has changed since, as with a newer version of the package."""
    results: dict[str, dict[str, Any]] = {}
    keys = {task.name: task.key for task in tasks}
    adapted = {task.name for task in tasks if task.kind is not None}

    def look(jobs: tuple[Job, ...]) -> dict[str, dict[str, Any]]:
        for job in jobs:
            gone = ended and not request.has_data(job)
            found = read_result(folder, job, None if gone else request.data_key(job), any_recipe=any_recipe)
            if found:
                results[job.name] = found
        return {name: one for name, one in results.items() if is_finished(name, one)}

    def is_finished(name: str, one: dict[str, Any]) -> bool:
        if ended or not one["done"] or (one["error"] and name not in tried):
            return ended and bool(one["done"])
        wanted = {task: key for task, key in keys.items() if not one["tuning"] or task == request.sweep_by}
        return name in tried or one["tasks"] == wanted

    sweeps: dict[str, Tuned] = {}
    compared: list[tuple[Asked, Job]] = []
    waiting: list[Job] = []
    controls: set[str] = set()
    for asked in request.asked:
        sweep = _tuned(asked, request, look)
        sweeps[asked.entry.name] = sweep
        waiting += sweep.jobs
        if sweep.entry is None:
            continue
        jobs = tuple(asked.job(sweep.entry, budget, seed) for seed in range(asked.seeds) for budget in asked.budgets)
        finished = look(jobs)
        compared += [(asked, job) for job in jobs]
        control = _control(jobs, results, adapted) if request.untrained and adapted else None
        if control is not None:
            controls.add(control.name)
            lacks = adapted - set(results.get(control.name, {}).get("untrained", {}))
            if lacks - set(results.get(control.name, {}).get("skipped", {})) and control.name not in tried:
                finished.pop(control.name, None)
        waiting += [job for job in jobs if job.name not in finished]
    return State(request, sweeps, tuple(compared), results, _in_turn(waiting), frozenset(controls))


def _control(jobs: tuple[Job, ...], results: dict[str, dict[str, Any]], adapted: set[str]) -> Job | None:
    """The job of an entry whose untrained copies are adapted: the one that has most of them, or the first that did not fail."""
    good = [job for job in jobs if not results.get(job.name, {}).get("error")]
    return max(good, key=lambda job: len(adapted & set(results.get(job.name, {}).get("untrained", {}))), default=None)


def _tuned(asked: Asked, request: Request, look: Any) -> Tuned:
    """The sweep of an entry, round after round: the results of a round say which jobs the next one has."""
    known: dict[str, dict[str, Any]] = {}
    while True:
        sweep = tuned(asked, request, known)
        found = look(sweep.jobs)
        if not sweep.jobs or any(job.name not in found for job in sweep.jobs):
            missing = tuple(job for job in sweep.jobs if job.name not in found)
            return Tuned(sweep.entry, missing, sweep.runs, sweep.error)
        known |= found


def _in_turn(jobs: list[Job]) -> tuple[Job, ...]:
    """Small seeds first, so that a comparison that is stopped early has a run of every entry."""
    return tuple(sorted(jobs, key=lambda job: (not job.tuning, job.seed)))
