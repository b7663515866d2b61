"""Claims about adapting, tried: every task of a plan in every way of the plan, with several seeds, on one machine.

    python bench/claims.py bench/claims/tasks_en.toml --run runs/best --data tasks --out claims/tasks_en --at-once 12

A plan names tasks (files under --data, settings) and ways (settings, `tune`, `fresh`, `task`, `rows` of the training file,
`warm` for continued pretraining on its texts). Each task is learned in each way with each seed, the epoch is chosen on dev,
and the model is scored on test. `results.jsonl` in --out gets a line for each; started again, the finished ones are kept.
Without --run, the table of what is there is printed. Several processes share one GPU (with MPS, if it is there).

On a CPU, with fewer rows; the first is a quick check that a plan works, in under a minute on two quiet cores:

    python bench/claims.py bench/claims/tuning.toml --run runs/gpt2 --data tasks --out toy --seeds 1 --rows 64 --scored 32 --warm 5steps --set epochs=1
    python bench/claims.py bench/claims/tuning.toml --run runs/gpt2 --data tasks --out cpu --rows 1000 --scored 1000
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import queue
import shutil
import statistics
import time
import tomllib
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch.multiprocessing as processes

from unmask.chance import generator
from unmask.comparison.job import main_score
from unmask.comparison.sharing import shared_gpu

RESULTS = "results.jsonl"


@dataclass(frozen=True)
class Way:
    """How a task is learned."""

    settings: tuple[str, ...] = ()
    tune: str | None = None
    task: str | None = None
    fresh: bool = False  # start from random weights
    rows: float | None = None  # of the training file: a number, or a share under 1; None: all
    warm: str | None = None  # a budget of continued pretraining on the texts of the task


@dataclass(frozen=True)
class Files:
    """The files of a task, under the folder of the data, and what it needs in every way."""

    train: str
    dev: str
    test: str
    rows: float | None = None
    settings: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()  # the names of the ways that it is learned in; (): all
    task: str | None = None
    measure: str | None = None  # the score that is shown; None: the one that models of the task are compared by

    @property
    def paths(self) -> tuple[str, str, str]:
        return self.train, self.dev, self.test


@dataclass(frozen=True)
class Job:
    """One training and its score."""

    task: str
    way: str
    seed: int
    files: Files = field(compare=False)
    how: Way = field(compare=False)

    @property
    def name(self) -> str:
        return f"{self.task}-{self.way}-{self.seed}".replace(" ", "_").replace("%", "")


@dataclass(frozen=True)
class Limits:
    """What makes a plan small enough for a CPU."""

    rows: int | None = None  # most rows of a training file; None: those of the plan
    scored: int | None = None  # most rows of a dev or test file; None: all
    settings: tuple[str, ...] = ()  # for all tasks and ways
    warm: str | None = None  # the budget of continued pretraining; None: that of the plan


def read_plan(path: Path, seeds: int) -> list[Job]:
    plan = tomllib.loads(path.read_text(encoding="utf-8"))
    ways = {name: Way(**_tuples(values)) for name, values in plan["ways"].items()}
    tasks = {name: Files(**_tuples(values)) for name, values in plan["tasks"].items()}
    return [
        Job(task, way, seed, files, how)
        for seed in range(seeds)
        for task, files in tasks.items()
        for way, how in ways.items()
        if not files.ways or way in files.ways
    ]


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def learn(job: Job, run: Path, data: Path, out: Path, limits: Limits) -> dict[str, Any]:
    """Train and score one model; its folder is deleted."""
    import unmask  # in the process that works, after its environment is set

    began, worked, folder = time.monotonic(), time.process_time(), out / "runs" / job.name
    rows = job.how.rows if job.how.rows is not None else job.files.rows
    train = _some(data / job.files.train, rows, job.seed, out / "rows", most=limits.rows)
    dev, test = (
        _some(data / file, None, 0, out / "scored", most=limits.scored) for file in (job.files.dev, job.files.test)
    )
    task = job.how.task or job.files.task
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run may have left
    try:
        base = unmask.load(run)
        if job.how.warm is not None:
            warmed = folder / "warm"
            base = unmask.warm(
                base, train, warmed, budget=limits.warm or job.how.warm, task=task, seed=job.seed, progress=False
            )
        settings = (*job.files.settings, *job.how.settings, *limits.settings)
        model = base.adapt(
            train, folder / "model", dev=dev, task=task, tune=job.how.tune, settings=settings,
            seed=job.seed, fresh=job.how.fresh, progress=False,
        )  # fmt: skip
        learned = time.monotonic()
        scores = model.evaluate(test)
        measure = job.files.measure or main_score(scores, model.recipe.task)["measure"]
        trained = next(row["trained_parameters"] for row in model.history if "trained_parameters" in row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    numbers = {name: value for name, value in scores.items() if isinstance(value, int | float)}
    return {
        "measure": measure, "seconds": learned - began, "cpu_seconds": time.process_time() - worked, "scoring": time.monotonic() - learned, "trained_parameters": trained,
        "scores": numbers,
    }  # fmt: skip


def _some(file: Path, rows: float | None, seed: int, folder: Path, *, most: int | None) -> Path:
    """A file with some of the lines, drawn at random: more rows contain fewer ones of the same seed. `rows`: a number, or a share under
    1; None: all. `most`: as if the file had no more than these."""
    if rows is None and most is None:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        every = list(lines)
    total = len(every) if most is None else min(most, len(every))
    count = total if rows is None else min(int(rows), total) if rows >= 1 else max(1, round(rows * total))
    made = folder / f"{file.parent.name}-{file.name.split('.')[0]}-{count}-{seed}.jsonl"
    if not made.exists():
        order = generator(seed, 0).permutation(len(every))[:count]
        draft = made.with_suffix(f".{os.getpid()}")
        draft.write_text("".join(every[i] for i in order), encoding="utf-8")
        draft.rename(made)
    return made


def work(jobs: Any, done: Any, run: Path, data: Path, out: Path, limits: Limits, environment: dict[str, str]) -> None:
    """A process that takes jobs until there are none, or until its parent is killed. A job that fails says why; the others go on."""
    parent = os.getppid()
    os.environ.update(environment)
    warnings.simplefilter("ignore")  # notices of each training, which are in its report
    while os.getppid() == parent:
        try:
            job = jobs.get(timeout=1)
        except queue.Empty:
            return
        try:
            found = learn(job, run, data, out, limits)
        except Exception as error:  # noqa: BLE001  every failure is a line of the results
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        done.put({"task": job.task, "way": job.way, "seed": job.seed} | found)


def run_all(jobs: list[Job], run: Path, data: Path, out: Path, at_once: int, limits: Limits) -> None:
    out.mkdir(parents=True, exist_ok=True)
    finished = {(row["task"], row["way"], row["seed"]) for row in read_results(out) if "error" not in row}
    left = [job for job in jobs if (job.task, job.way, job.seed) not in finished]
    context = processes.get_context("spawn")
    waiting, done = context.Queue(), context.Queue()
    for job in left:
        waiting.put(job)
    with shared_gpu(at_once) as environment, (out / RESULTS).open("a", encoding="utf-8") as results:
        workers = [
            context.Process(target=work, args=(waiting, done, run, data, out, limits, environment))
            for _ in range(min(at_once, len(left)))
        ]
        for worker in workers:
            worker.start()
        for number in range(1, len(left) + 1):
            row = done.get()
            print(f"{number}/{len(left)} {json.dumps(row)}", flush=True)
            results.write(json.dumps(row) + "\n")
            results.flush()


def read_results(out: Path) -> list[dict[str, Any]]:
    file = out / RESULTS
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Tasks in rows and ways in columns: mean and deviation over the seeds, in %."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    measures: dict[str, str] = {}
    for row in rows:
        if "error" not in row:
            measures[row["task"]] = row["measure"]
            scores[row["task"], row["way"]].append(row["scores"][measures[row["task"]]])
    ways = list(dict.fromkeys(row["way"] for row in rows))
    lines = [f"| task | {' | '.join(ways)} |", f"|---|{'---|' * len(ways)}"]
    for task, measure in measures.items():
        cells = [_cell(scores.get((task, way), [])) for way in ways]
        lines.append(f"| {task} ({measure}) | {' | '.join(cells)} |")
    last = {(row["task"], row["way"], row["seed"]): row for row in rows}  # a job that failed may have worked later
    failed = [f"{task} {way} seed {seed}: {row['error']}" for (task, way, seed), row in last.items() if "error" in row]
    return "\n".join(lines + failed)


def _cell(values: list[float]) -> str:
    if not values:
        return "-"
    deviation = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{deviation} ({len(values)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", type=Path, help="the pretrained run; without it, the table is printed")
    parser.add_argument("--data", type=Path, default=Path("tasks"), help="the folder of the plan's files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--task", action="append", help="only this task of the plan; give it several times")
    parser.add_argument("--rows", type=int, help="most rows of a training file")
    parser.add_argument("--scored", type=int, help="most rows of a dev or test file")
    parser.add_argument("--warm", help="the budget of continued pretraining, such as 5steps")
    parser.add_argument("--set", action="append", default=[], help="a setting of all tasks and ways, such as epochs=1")
    given = parser.parse_args()
    if given.run is not None:
        jobs = [job for job in read_plan(given.plan, given.seeds) if given.task is None or job.task in given.task]
        missing = sorted({str(given.data / file) for job in jobs for file in job.files.paths if not (given.data / file).exists()})  # fmt: skip
        if missing or not jobs:
            parser.error(f"no such files: {', '.join(missing)}; --data is the folder that the plan's paths start from" if missing else "the plan has no such task")  # fmt: skip
        run_all(
            jobs,
            given.run,
            given.data,
            given.out,
            given.at_once,
            Limits(given.rows, given.scored, tuple(given.set), given.warm),
        )
    print(table(read_results(given.out)))


if __name__ == "__main__":
    main()
