"""Compare recipes at equal budgets: every run is a job in a process of its own, and the folder remembers what was done."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unmask.comparison import job as jobs
from unmask.comparison import live
from unmask.comparison.entry import Entry, ablations, check_entries, read_settings, write_settings
from unmask.comparison.one_command import one_command
from unmask.comparison.report_page import columns, rows, write_report
from unmask.comparison.request import REQUEST, Asked, Job, Prepared, Request, budgets, parse_asked, read
from unmask.comparison.sharing import shared_gpu
from unmask.comparison.state import State, state_of
from unmask.comparison.summary import write_results
from unmask.comparison.task_files import TaskFiles, find
from unmask.comparison.tuning import LOSS, check_sweep
from unmask.errors import require
from unmask.pretraining import Mixture
from unmask.text.atomic_write import check_free
from unmask.train import Budget

__all__ = [
    "Asked",
    "Entry",
    "Prepared",
    "Request",
    "ablations",
    "budgets",
    "check_entries",
    "compare",
    "parse_asked",
    "report",
    "with_earlier",
]

EVERY = 1.0  # seconds between looks at the processes
PATIENCE = 20.0  # seconds that processes have to save their state when the comparison is stopped
BEST, LOGS = "best", "logs"
WRITTEN = (BEST, LOGS, jobs.MEASURED, jobs.RUNS, jobs.JOBS, jobs.ADAPTED, "examples")  # folders of a comparison
_CHILD = "import sys; from pathlib import Path; from unmask.comparison.job import main; sys.exit(main(*map(Path, sys.argv[1:])))"


def report(folder: Path, *, any_recipe: bool = True) -> dict[str, Any]:
    """Write `results.json` and `report.html` again from what was measured; returns the results. `any_recipe`: also of runs whose
    recipe has changed since."""
    request = read(folder)
    results = write_results(folder, request, state_of(folder, request, (), ended=True, any_recipe=any_recipe))
    write_report(folder, results)
    return results | {"table": {"columns": columns(results), "rows": list(rows(results))}}


def with_earlier(request: Request, folder: Path, *, overwrite: bool = False) -> Request:
    """The request with what the comparison in `folder` was asked for before."""
    check_free(folder, overwrite=overwrite or (folder / REQUEST).is_file(), folder=True, marker=REQUEST)
    before = read(folder) if (folder / REQUEST).is_file() and not overwrite else None
    return before.joined(request) if before else request


def compare(
    request: Request, folder: Path, *, at_once: int | None = None, overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Run what is missing of a comparison, yielding a record whenever something changes. The last record has `results`.

    A comparison that is in `folder` goes on, with what this request adds. `at_once`: how many runs share the machine."""
    require(at_once is None or at_once > 0, "--at-once must be 1 or more, got {at_once}", at_once=at_once)
    request = with_earlier(request, folder, overwrite=overwrite)
    tasks, notices = _checked(request)
    with one_command(folder, "compare"):
        yield from _compare(request, folder, tasks, notices, at_once=at_once, overwrite=overwrite, stop=stop)


def _compare(
    request: Request, folder: Path, tasks: Sequence[TaskFiles], notices: Sequence[str], *, at_once: int | None,
    overwrite: bool, stop: Callable[[], bool],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    if overwrite:
        for name in WRITTEN:
            shutil.rmtree(folder / name, ignore_errors=True)
    request.write(folder)
    for notice in notices:
        yield {"event": "notice", "text": notice}
    number = at_once or _usual(request)
    with shared_gpu(number if _on_gpu(request) else 1) as environment:
        yield from _Work(folder, request, tasks, number, environment, stop).done()
    results = report(folder, any_recipe=False)  # runs of an older recipe wait to be trained again
    for run in results["runs"]:
        for task, why in run["skipped"].items():
            yield {"event": "notice", "text": f"{run['name']} has no score for {task}: {why}"}
    yield {"event": "results", "results": results | {"stopped": stop()}}


def _checked(request: Request) -> tuple[list[TaskFiles], list[str]]:
    """Find mistakes before anything is trained. Returns the tasks, and notices about what no task reads."""
    check_entries([one.entry for one in request.asked])
    require(
        all(one.seeds > 0 for one in request.asked) and request.task_seeds > 0,
        "--seeds and --task-seeds must be 1 or more",
    )
    check_sweep(request)
    for one in request.asked:
        Mixture.open(request.data_of(one.prepared)).check(one.entry.made())
    tasks, notices = find(Path(request.tasks)) if request.tasks else ([], [])
    for task in tasks:
        task.check()
    names = [task.name for task in tasks]
    require(
        request.sweep_by == LOSS or request.sweep_by in names,
        "--sweep-by must be loss or a task, got {by!r}; the tasks are {names}",
        by=request.sweep_by,
        names=", ".join(names) or "none",
    )
    return tasks, notices


def _on_gpu(request: Request) -> bool:
    return request.device != "cpu" and torch.cuda.is_available()


def _usual(request: Request) -> int:
    """Runs at once: one if budgets are in time, because each would get less of the machine. Otherwise four on a GPU, and on a
    CPU one for each core, at most four: a small network hardly gains from a second core."""
    in_time = any(Budget.parse(budget).kind == "seconds" for one in request.asked for budget in one.budgets)
    runs = sum(one.seeds * len(one.budgets) for one in request.asked)
    return 1 if in_time else 4 if _on_gpu(request) else min(4, os.cpu_count() or 1, runs)


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]


class _Work:
    """The processes of a comparison."""

    def __init__(
        self, folder: Path, request: Request, tasks: Sequence[TaskFiles], at_once: int, environment: Mapping[str, str],
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.folder, self.request, self.tasks, self.at_once, self.stop = folder, request, tasks, at_once, stop
        threads = str(max(1, (os.cpu_count() or 1) // at_once))
        self.environment = os.environ | environment | {"OMP_NUM_THREADS": threads}
        self.running: list[_Running] = []
        self.tried: set[str] = set()  # a job that failed is tried again by the next command, not by this one
        self.alone: set[str] = set()  # jobs that had too little memory beside others

    def done(self) -> Iterator[dict[str, Any]]:
        """Run all jobs, yielding the state once a second."""
        try:
            while True:
                yield from self._ended()
                state = self._state()
                if not self.stop():
                    self._begin(state)
                elif self.running:
                    self._end()
                running = {one.job.name for one in self.running}
                yield {"event": "state", "columns": live.COLUMNS, "rows": list(live.rows(self.folder, state, running))}
                if not self.running:
                    return
                time.sleep(EVERY)
        finally:
            self._end()

    def _state(self) -> State:
        return state_of(self.folder, self.request, self.tasks, tried=frozenset(self.tried - self.busy))

    @property
    def busy(self) -> set[str]:
        return {one.job.name for one in self.running}

    def _begin(self, state: State) -> None:
        busy = self.busy
        for entry, by in state.best.items():
            _write_best(self.folder, state, entry, by)
        waiting = [job for job in state.waiting if job.name not in busy and job.name not in self.tried]
        for job in waiting:
            limit = 1 if job.name in self.alone or busy & self.alone else self.at_once
            if len(self.running) >= limit:
                return
            self.tried.add(job.name)
            self.running.append(self._started(job, control=job.name in state.controls))
            busy.add(job.name)

    def _started(self, job: Job, *, control: bool) -> _Running:
        file = jobs.write_job(self.folder, job, control=control, at_once=self.at_once)
        log = self.folder / LOGS / f"{job.name}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(self.folder), str(file)],
                stdout=out, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True,
            )  # fmt: skip
        return _Running(job, process)

    def _ended(self) -> Iterator[dict[str, Any]]:
        """Look at the processes that have ended. One that crashed gets a result that says so."""
        for one in [one for one in self.running if one.process.poll() is not None]:
            self.running.remove(one)
            result = jobs.read_result(self.folder, one.job, self.request.data_key(one.job))
            if one.process.returncode:
                measuring = jobs.Measuring(self.folder, one.job, self.request, self.stop)
                measuring.result |= {"error": self._why(one), "done": True}
                measuring.write()
            elif result.get("out_of_memory") and self.at_once > 1 and one.job.name not in self.alone:
                self.alone.add(one.job.name)
                self.tried.discard(one.job.name)
                text = (f"{one.job.name} had too little GPU memory beside other runs ({self.at_once} at once): it is run "
                        "again alone; a smaller --at-once avoids this")  # fmt: skip
                yield {"event": "notice", "text": text}
            error = jobs.read_result(self.folder, one.job, self.request.data_key(one.job)).get("error")
            yield {"event": "ended", "job": one.job.name, "error": error, "stopped": self.stop()}

    def _why(self, one: _Running) -> str:
        """Why a process ended without a result."""
        status = one.process.returncode
        if status < 0:
            memory = ": perhaps the machine had too little memory" if status == -signal.SIGKILL else ""
            return f"its process was killed by signal {-status}{memory}"
        log = self.folder / LOGS / f"{one.job.name}.txt"
        said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return f"its process ended with status {status}: {said[-1] if said else 'it said nothing'} (see {log})"

    def _end(self) -> None:
        """End the processes. Those that train save their state first."""
        for one in self.running:
            one.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        for one in self.running:
            try:
                one.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:  # in a long step, such as compiling: its last checkpoint stays
                one.process.kill()
                one.process.wait()
        self.running = [one for one in self.running if one.process.poll() is None]


def _write_best(folder: Path, state: State, entry: Entry, runs: int) -> None:
    """The best settings of an entry as a file for `unmask pretrain --like`."""
    file = folder / BEST / f"{entry.folder}.json"
    if not file.is_file() or read_settings(file).settings != entry.settings:
        write_settings(entry, file, {"chosen_by": state.request.sweep_by, "runs": runs})
