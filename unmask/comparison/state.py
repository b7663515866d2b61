"""Where a comparison stands: what was measured, and which jobs can be run now. It is read from the folder each time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.comparison.entry import Entry
from unmask.comparison.job import read_result
from unmask.comparison.request import Asked, Job, Request
from unmask.comparison.tuning import Tuned, tuned


@dataclass(frozen=True)
class State:
    request: Request
    sweeps: dict[str, Tuned]  # by the name of the entry
    compared: tuple[tuple[Asked, Job], ...]  # the runs that are compared, of all entries whose settings are known
    results: dict[str, dict[str, Any]]  # what was measured, by the name of the job
    waiting: tuple[Job, ...]  # the jobs that can be run now

    @property
    def best(self) -> dict[Entry, int]:
        """The entries whose sweep is done, with their best settings, and the number of runs that it took."""
        found = self.sweeps.values() if self.request.sweep else ()
        return {sweep.entry: len(sweep.runs) for sweep in found if sweep.entry is not None}

    def needs_control(self, job: Job) -> bool:
        """Whether this job also adapts copies with random weights: one run of each entry does."""
        first = next((one for _, one in self.compared if one.entry.name == job.entry.name), None)
        return self.request.untrained and not job.tuning and job == first


def state_of(folder: Path, request: Request, *, tried: frozenset[str] = frozenset(), failed: bool = False) -> State:
    """`tried`: jobs that this command has run: if they failed, that stands. Others that failed wait to be run again.
    `failed`: every job that failed counts as finished, for a report."""
    results: dict[str, dict[str, Any]] = {}

    def look(jobs: tuple[Job, ...]) -> dict[str, dict[str, Any]]:
        for job in jobs:
            found = read_result(folder, job)
            if found:
                results[job.name] = found
        return {
            name: one for name, one in results.items() if one["done"] and (not one["error"] or failed or name in tried)
        }

    sweeps: dict[str, Tuned] = {}
    compared: list[tuple[Asked, Job]] = []
    waiting: list[Job] = []
    for asked in request.asked:
        sweep = _tuned(asked, request, look)
        sweeps[asked.entry.name] = sweep
        waiting += sweep.jobs
        if sweep.entry is None:
            continue
        jobs = tuple(Job(sweep.entry, budget, seed) for seed in range(asked.seeds) for budget in asked.budgets)
        finished = look(jobs)
        compared += [(asked, job) for job in jobs]
        waiting += [job for job in jobs if job.name not in finished]
    return State(request, sweeps, tuple(compared), results, _in_turn(waiting))


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
