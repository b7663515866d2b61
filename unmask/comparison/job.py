"""One job of a comparison, in a process of its own: pretrain, score, adapt for each seed, and write what was measured.

What is measured is written after every step, so a killed job goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from unmask import run
from unmask.adapt import adapt
from unmask.axes import Task
from unmask.comparison.peak import peak_memory
from unmask.comparison.request import Job, Request, read
from unmask.comparison.sharing import limit_memory
from unmask.comparison.task_files import TaskFiles, find
from unmask.errors import UserError
from unmask.evaluate import evaluate_examples, evaluate_file
from unmask.infer.model import Model, open_run
from unmask.pretraining import pretrain
from unmask.recipe_file import is_path
from unmask.system.cost import schedule_flops
from unmask.text.atomic_write import drafted
from unmask.threads import wait_without_spinning
from unmask.train import log

MEASURED, RUNS, JOBS, ADAPTED = "measured", "runs", "jobs", "adapted"
# copies of a network that are adapted too: with random weights; and after one step, with what fills it before training
CONTROLS = ("untrained", "start")
# the score that stands for all scores of a file without a task, by the first of these names; and whether more is better
MAIN = {"mean_over_paradigms": True, "accuracy": True, "bits_per_byte": False}


def result_file(folder: Path, job: Job) -> Path:
    return folder / MEASURED / f"{job.name}.json"


def read_result(folder: Path, job: Job, data: str | None, *, any_recipe: bool = False) -> dict[str, Any]:
    """What was measured of a job so far; empty if nothing was, or with another recipe or other data. `data`: their key;
    None: any data. `any_recipe`: also if the recipe has changed since."""
    file = result_file(folder, job)
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except ValueError:  # written by hand, or a damaged disk: it is measured again
        return {}
    same = any_recipe or found.get("recipe_key") == job.entry.key
    return found if same and data in (None, found.get("data_key")) else {}


class Stopped(Exception):
    """The user stops the comparison; the job goes on another time."""


class Measuring:
    """A job, and what is measured of it. Everything that is added is written at once."""

    def __init__(self, folder: Path, job: Job, request: Request, stop: Callable[[], bool], at_once: int = 1) -> None:
        """`at_once`: how many runs share the machine."""
        self.folder, self.job, self.request, self.stop, self.at_once = folder, job, request, stop, at_once
        self.run, data = folder / RUNS / job.name, request.data_key(job)
        fresh: dict[str, Any] = {"entry": asdict(job.entry), "budget": job.budget, "seed": job.seed, "tuning": job.tuning,
                                 "recipe_key": job.entry.key, "data_key": data, "pretraining": {}, "tasks": {}, "scores": {},
                                 **{name: {} for name in CONTROLS}, "skipped": {}, "notices": [], "commands": []}  # fmt: skip
        # a run that was deleted is trained again: what was measured of it is not of the new one
        self.before = read_result(folder, job, data) if (self.run / run.RECIPE).is_file() else {}
        self.result = fresh | self.before | {"error": None, "out_of_memory": False, "done": False}

    def write(self) -> None:
        file = result_file(self.folder, self.job)
        file.parent.mkdir(parents=True, exist_ok=True)
        with drafted(file) as draft:
            draft.write_text(json.dumps(self.result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def measure(self, tasks: list[TaskFiles], *, control: bool) -> None:
        """Measure what is missing. `control`: also adapt copies that have learned nothing."""
        if not self.before:  # what may be there is of another recipe or other data
            shutil.rmtree(self.run, ignore_errors=True)
        self._forget(tasks)
        self.write()
        if "seconds" not in self.result["pretraining"]:
            self._pretrain()
        model = self._opened(self.run)
        for task in tasks:
            try:
                self._measure_task(model, task, control=control)
            except UserError as error:  # the other tasks go on
                self.result["skipped"][task.name] = str(error)
            self.result["tasks"][task.name] = task.key
            self.write()
        shutil.rmtree(self._at_start, ignore_errors=True)
        self.result["done"] = True
        self.write()

    def _forget(self, tasks: list[TaskFiles]) -> None:
        """Drop the scores of tasks that have changed or are gone."""
        now = {task.name: task.key for task in tasks}
        for name in [name for name, key in self.result["tasks"].items() if now.get(name) != key]:
            for place in ("tasks", "scores", *CONTROLS, "skipped"):
                self.result[place].pop(name, None)

    def _opened(self, folder: Path) -> Model:
        """The model in a run folder; if it uses parts of a recipe file, with the file of the entry."""
        own = run.file_for(folder, self.job.entry.recipe if is_path(self.job.entry.recipe) else None)
        return open_run(folder, device=self.request.device, recipe=own)

    def _measure_task(self, model: Model, task: TaskFiles, *, control: bool) -> None:
        if task.kind is None:
            self._score(model, task)
            return
        self._adapt(model, task, "scores")
        if control:
            self._adapt(model, task, "untrained", fresh=True)
        if control and model.recipe.start is not None and self._missing(task, "start"):
            self._adapt(self._start, task, "start")

    @cached_property
    def _start(self) -> Model:
        """The network after one step: with what fills it before training, such as word vectors, and next to nothing else."""
        job = replace(self.job, budget="1steps")
        for record in pretrain(job.entry.made(), self.request.data_of(job.prepared), self._at_start, budget=job.budget,
                               seed=job.seed, device=self.request.device, overwrite=True, stop=self.stop):  # fmt: skip
            if record.get("stopped"):
                raise Stopped
        self.result["commands"].append(_pretrain_command(job, self.request, self._at_start))
        return self._opened(self._at_start)

    @property
    def _at_start(self) -> Path:
        return self.folder / ADAPTED / self.job.name / "start"

    def _missing(self, task: TaskFiles, into: str) -> list[int]:
        """The adapting seeds that have no score yet."""
        found = self.result[into].get(task.name, {})
        return [seed for seed in range(self.request.task_seeds) if str(seed) not in found]

    def _pretrain(self) -> None:
        recipe, job = self.job.entry.made(), self.job
        last: dict[str, Any] = {}
        began = time.monotonic()
        for record in pretrain(recipe, self.request.data_of(job.prepared), self.run, budget=job.budget, seed=job.seed,
                               device=self.request.device, resume=True, at_once=self.at_once, stop=self.stop):  # fmt: skip
            self._notice(record)
            last = record if "step" in record else last
            if record.get("stopped"):
                raise Stopped
        last = last or log.read(self.run)[-1]
        model = self._opened(self.run)
        made, vocabulary = model.recipe, model.tokenizer.vocabulary.size
        losses = {name.removeprefix("validation_"): last[name] for name in last if name.startswith("validation_")}
        self.result["pretraining"] = {
            "seconds": last["seconds"], "wall": time.monotonic() - began, "tokens": last["tokens"], "steps": last["step"],
            "flops": schedule_flops(made, vocabulary) * last["tokens"], "held_out_loss": losses.pop("loss", None),
            "held_out": losses, "rate": made.optimise.rate, "peak_memory": peak_memory(self.request.device),
            "at_once": self.at_once,
        }  # fmt: skip
        self.result["commands"].append(_pretrain_command(job, self.request, self.run))
        self.write()

    def _score(self, model: Model, task: TaskFiles) -> None:
        """Score the model on a file, without adapting it."""
        if task.name not in self.result["scores"] and task.name not in self.result["skipped"]:
            self.result["scores"][task.name] = {"0": main_score(evaluate_file(model, task.test), None)}
            self.result["commands"].append(shlex.join(["unmask", "evaluate", str(self.run), str(task.test)]))

    def _adapt(self, model: Model, task: TaskFiles, into: str, *, fresh: bool = False) -> None:
        assert task.train is not None
        part, way, missing = task.task(), task.way(), self._missing(task, into)
        found = self.result[into].setdefault(task.name, {})
        if not missing:
            return
        examples, held, tested = (
            part.read(file, None)[0] if file else [] for file in (task.train, task.dev, task.test)
        )
        for seed in missing:
            out = self.folder / ADAPTED / self.job.name / f"{task.name}-{into}-{seed}"
            chosen, file = task.drawn(examples, seed), task.train
            if len(chosen) < len(examples):
                file = _write_drawn(self.folder / "examples" / f"{task.name}-{task.key}-{seed}.jsonl", chosen)
            for record in adapt(model, chosen, out, task=part, tune=way, dev=held, seed=seed, fresh=fresh, overwrite=True,
                                stop=self.stop):  # fmt: skip
                if record.get("stopped"):
                    raise Stopped
            found[str(seed)] = main_score(evaluate_examples(self._opened(out), tested), part)
            shutil.rmtree(out)
            self.result["commands"] += _adapt_commands(task, model.folder, file, out, seed, fresh=fresh)
            self.write()

    def _notice(self, record: dict[str, Any]) -> None:
        text = record.get("text") if record.get("event") == "notice" else None
        if text and text not in self.result["notices"]:
            self.result["notices"].append(text)


def _write_drawn(file: Path, chosen: list[Any]) -> Path:
    """Write the drawn examples, so that the commands of a run can be given again."""
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with drafted(file) as draft:
            rows = (json.dumps(dict(example.row), ensure_ascii=False) + "\n" for example in chosen)
            draft.write_text("".join(rows), encoding="utf-8")
    return file


def main_score(scores: dict[str, Any], task: Task | None) -> dict[str, Any]:
    """All scores that are numbers, with the one that stands for them. `task`: that of the model, which says which one."""
    higher = MAIN if task is None else dict.fromkeys(task.main_scores, True)
    name = next((name for name in higher if scores.get(name) is not None), None)
    if name is None:
        raise UserError(
            "models are compared by {names}, but the scores are {known}: name one of them in main_scores of the task",
            names=" or ".join(higher) or "no score",
            known=", ".join(scores),
        )
    numbers = {key: value for key, value in scores.items() if isinstance(value, float | int)}
    return {"score": scores[name], "measure": name, "higher": higher[name], "all": numbers}


def _pretrain_command(job: Job, request: Request, out: Path) -> str:
    entry = job.entry
    reading = job.prepared.options if job.prepared else ()
    words = ["unmask", "pretrain", entry.recipe, *request.data, *reading, "--size", entry.size, "--budget", job.budget,
             "--seed", str(job.seed), "--out", str(out)]  # fmt: skip
    words += ["--variant", entry.variant] if entry.variant != "paper" else []
    words += ["--device", request.device] if request.device else []
    return shlex.join([*words, *(word for one in entry.settings for word in ("--set", one))])


def _adapt_commands(
    task: TaskFiles, base: Path, file: Path, out: Path, seed: int, *, fresh: bool
) -> Iterator[str]:  # fmt: skip
    words = ["unmask", "adapt", str(base), str(file), "--task", str(task.kind), "--seed", str(seed), "--out", str(out)]
    words += ["--dev", str(task.dev)] if task.dev else []
    words += ["--tune", task.tune] if task.tune else []
    words += ["--fresh"] if fresh else []
    yield shlex.join([*words, *(word for one in task.settings for word in ("--set", one))])
    yield shlex.join(["unmask", "evaluate", str(out), str(task.test)])


def write_job(folder: Path, job: Job, *, control: bool, at_once: int = 1) -> Path:
    """Write a job to a file for its process."""
    file = folder / JOBS / f"{job.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(job) | {"control": control, "at_once": at_once}), encoding="utf-8")
    return file


def _read_job(file: Path) -> tuple[Job, bool, int]:
    values = json.loads(file.read_text(encoding="utf-8"))
    control, at_once = (values.pop(name) for name in ("control", "at_once"))
    return Job.of(values), control, at_once


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """True after a signal to end, or when the comparison itself has ended; training then saves its state first."""
    asked, parent = [], os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: asked.append(got))
    yield lambda: bool(asked) or os.getppid() != parent


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Wait until no other process works on this job: one whose comparison was killed may still be saving."""
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main(folder: Path, file: Path) -> int:
    """Run a job. The exit status is 0 also for a job that failed: its result says why."""
    wait_without_spinning()
    request, (job, control, at_once) = read(folder), _read_job(file)
    limit_memory(request.device, at_once)
    tasks = find(Path(request.tasks))[0] if request.tasks else []
    wanted = [task for task in tasks if not job.tuning or task.name == request.sweep_by]
    with _stopping() as stop, _alone(file):
        measuring = Measuring(folder, job, request, stop, at_once)
        try:
            measuring.measure(wanted, control=control)
        except Stopped:
            return 0
        except (UserError, torch.OutOfMemoryError) as error:
            memory = any(isinstance(one, torch.OutOfMemoryError) for one in (error, error.__context__))
            said = str(error) if isinstance(error, UserError) else "out of GPU memory while scoring or adapting"
            measuring.result |= {"error": said, "out_of_memory": memory, "done": True}
            measuring.write()
    return 0
