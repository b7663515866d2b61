"""Adapt one model to several tasks together: tracks that take turns, each with its own head (MT-DNN)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from unmask import adapt
from unmask.adapt.epochs import Opened, ToRead, of_dev, packing_of, rounds
from unmask.adapt.many_settings import Many
from unmask.adapt.resuming import claim, fingerprint
from unmask.adapt.special_tokens import with_special_tokens
from unmask.axes import Judged, Task
from unmask.batch import Batch
from unmask.data import FromTask, Labelled, labelled
from unmask.data.examples import Examples
from unmask.data.loader import TRACK_BITS, track_seed
from unmask.data.pack import Rows
from unmask.data.pack_examples import Packing
from unmask.data.turns import TurnLoader
from unmask.errors import require
from unmask.hide import Nothing
from unmask.infer.answer import TaskReader
from unmask.infer.likelihood import machine_of
from unmask.infer.model import Model
from unmask.infer.one_task import one_task
from unmask.infer.passes import laid_out
from unmask.recipe import Recipe, Stage, Track
from unmask.system import Single
from unmask.tasks._recipe import check_length, kept_backbone, reading
from unmask.tasks._track import track_of
from unmask.tasks._training import Hyperparameters
from unmask.tasks.seen_examples import save_seen

Packings = Mapping[str, Packing | None]  # by the name of a task: how its examples share rows


@dataclass(frozen=True)
class Labels:
    """One of several tasks, and its examples."""

    name: str
    task: Task
    file: str  # that the examples come from
    examples: Sequence[Any]
    dev: Sequence[Any] = field(
        default=(), repr=False
    )  # scored after each epoch; (): the task does not choose the epoch


def adapt_many(
    base: Model, tasks: Sequence[Labels], out: str | Path, *, many: Many, seed: int = 0, fresh: bool = False,
    overwrite: bool = False, resume: bool = False, stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Train one model on several tasks, yielding records (see `rounds`). With dev sets, the weights of the epoch with the best
    mean of their scores are saved. `fresh`: start from random weights. `resume`: as for `adapt`."""
    adapt.check_base(base)
    out = Path(out)
    claim(out, resume=resume, overwrite=overwrite, base=base.folder)
    base, tasks = _ready(base, tasks, many)
    many = many.sized([len(one.examples) for one in tasks])
    plan = many.hyperparameters(base.recipe)
    check_length(base, plan.length)
    recipe = _recipe(base, tasks, many, plan, seed, fresh)
    model = adapt.new_model(base, recipe, out, seed, fresh)
    parts = {one.name: one_task(model, one.name) for one in tasks}
    rows, notes = _rows(parts, tasks)
    packings = {name: packing_of(part.recipe, rows[name]) for name, part in parts.items()}
    recipe = recipe.replace(schedule=many.schedule(batches(rows, plan), plan))
    model = replace(model, recipe=recipe)
    judge = _JudgeAll(model, {one.name: one.dev for one in tasks if one.dev})
    examples = sum(len(one.examples) for one in tasks)
    start = {"tasks": {one.name: {"examples": len(one.examples), "dev": len(one.dev)} for one in tasks}}
    yield from rounds(
        model, to_read(rows, examples, recipe.schedule, plan, seed, packings), plan, notes=notes, seed=seed, start=start,
        validate=judge if judge.dev else None, stop=stop,
        remarks=lambda: [f"{one.name}: {text}" for one in tasks for text in _remarks(model, one, judge)], resume=resume,
    )  # fmt: skip
    save_seen(out, *((recipe.tasks[one.name], one.examples) for one in tasks))


def _ready(base: Model, tasks: Sequence[Labels], many: Many) -> tuple[Model, list[Labels]]:
    """The model with the special tokens of all tasks, and the tasks with the values that their examples decide."""
    require(len(tasks) >= 2, "several tasks are trained together, got {count}: give the file of one task instead of a folder", count=len(tasks))  # fmt: skip
    found = []
    for one in tasks:
        learned = one.task.learn(one.examples).among_many(pairs=many.pairs, lists=many.lists).learn(one.examples)
        for some in (one.examples, one.dev):
            learned.check(some, "the first training example")
        base = with_special_tokens(base, learned, None)
        found.append(replace(one, task=learned))
    kept = base.recipe.replace(system=Single(backbone=kept_backbone(base, Nothing())))
    return replace(base, recipe=kept), found


def _recipe(base: Model, tasks: Sequence[Labels], many: Many, plan: Hyperparameters, seed: int, fresh: bool) -> Recipe:
    """The recipe in which each task is a track, and no other track has a turn."""
    tracks = {one.name: _track(base, one, plan, seed, fresh) for one in tasks}
    alike = dict.fromkeys(tracks, 1)  # until it is known how many rows each task has
    found: Recipe = base.recipe.replace(
        arrange=FromTask(),
        hide=Nothing(),
        see=reading(base),
        predict={},
        optimise=many.optimise(plan),
        schedule=many.schedule(alike, plan),
        reads=plan.length,
        segments=(),
        tracks=tracks,
        writes_with=None,
        adapt=replace(base.recipe.adapt, language=0.0),  # the model does not score tokens any more
        task=None,
        tune=None,
    )
    return found


def _track(base: Model, one: Labels, plan: Hyperparameters, seed: int, fresh: bool) -> Track:
    values = {"epochs": plan.epochs, "examples": plan.examples, "rate": plan.rate, "warmup": plan.warmup,
              "decay": plan.decay, "layer_decay": 1.0, "length": plan.length, "patience": plan.patience}  # fmt: skip
    task: Any = replace(one.task, **values)  # type: ignore[type-var]
    made = task.made(examples=len(one.examples), seed=seed, fresh=fresh)
    found = track_of(base, one.name, Track(), made, Labelled(file=one.file, fingerprint=labelled.fingerprint(one.file)))
    require(
        bool(found.own),
        "the task {name!r} ({kind}) has no head of its own, because it trains the network's own prediction of tokens, which a model "
        "of several tasks does not keep: adapt a model to it alone",
        name=one.name,
        kind=type(task).__name__,
    )
    return found


def _rows(parts: Mapping[str, Model], tasks: Sequence[Labels]) -> tuple[dict[str, Rows], Counter[str]]:
    """The rows of the training examples of each task, and what a user should know about all texts."""
    rows, notes = {}, Counter[str]()
    for one in tasks:
        model = parts[one.name]
        task: Any = model.recipe.task
        rows[one.name], noted = laid_out(model, task.lay_out(one.examples))
        held = laid_out(model, task.lay_out(one.dev))[1] if one.dev else Counter[str]()
        found = Counter(noted) + Counter(of_dev(held))
        notes.update({f"{text} ({one.name})": count for text, count in found.items()})
    return rows, notes


def batches(rows: Mapping[str, Rows], plan: Hyperparameters) -> dict[str, int]:
    """The number of batches of an epoch of each task. A task may have more rows than examples: windows, or lists of passages."""
    return {name: max(1, round(len(mine) / plan.examples)) for name, mine in rows.items()}


def to_read(
    rows: Mapping[str, Rows],
    examples: int,
    stages: Sequence[Stage],
    plan: Hyperparameters,
    seed: int,
    packings: Packings,
) -> ToRead:
    """The tasks as tracks that take turns. In an epoch there are as many steps as all tasks have batches."""
    steps = sum(batches(rows, plan).values())
    ends = [*list(accumulate(stage.share for stage in stages))[:-1], 1.0]
    legs = tuple((end, _turns(rows, stage, seed, packings)) for end, stage in zip(ends, stages, strict=True))
    count = sum(map(len, rows.values()))
    return ToRead(examples, count, plan.examples, steps, legs, fingerprint(rows.values()))


def _turns(rows: Mapping[str, Rows], stage: Stage, seed: int, packings: Packings) -> Opened:
    def opened(state: dict[str, Any] | None, widths: int | None) -> TurnLoader:
        few = None if widths is None else max(2, widths // len(rows))  # each width of each track has its own recording
        each: dict[str, Any] = {
            name: lambda place, name=name, number=number: TrackExamples(
                rows[name], track_seed(seed, name, number), place, number, few, packings[name]
            )
            for number, name in enumerate(rows, 1)
        }
        return TurnLoader(each, stage.turns, stage.rows, seed, state)

    return opened


class TrackExamples(Examples):
    """The examples of one of several tracks: the number of the track is part of the address of a row."""

    def __init__(
        self, rows: Rows, seed: int, state: dict[str, Any] | None, number: int, widths: int | None, packing: Packing | None
    ) -> None:  # fmt: skip
        super().__init__(rows, seed, state, widths=widths, packing=packing)
        self.number = number

    def batch(self, rows: int) -> Batch:
        batch = super().batch(rows)
        return batch.replace(row=batch.row + (self.number << TRACK_BITS))


class _JudgeAll:
    """Scores a model on the dev set of each task after each epoch. Its score is the mean over the tasks."""

    def __init__(self, model: Model, dev: Mapping[str, Sequence[Any]]) -> None:
        self.model, self.dev = model, dev
        self.best: dict[str, Judged] = {}
        self.score = -np.inf

    def __call__(self) -> dict[str, float]:
        found = {}
        for name, examples in self.dev.items():
            part = one_task(self.model, name)
            assert part.recipe.task is not None
            with machine_of(part).autocast():
                found[name] = part.recipe.task.judge(TaskReader(part), examples)
        score = float(np.mean([one.score for one in found.values()]))
        if score > self.score:
            self.score, self.best = score, found
        return {"score": score} | {f"{name} {_main(one)}": one.score for name, one in found.items()}


def _main(judged: Judged) -> str:
    """The name of the score that a task is judged by."""
    return next((name for name, value in judged.scores.items() if value == judged.score), "score")


def _remarks(model: Model, one: Labels, judge: _JudgeAll) -> list[str]:
    part = one_task(model, one.name)
    assert part.recipe.task is not None
    return part.recipe.task.notices(TaskReader(part), one.examples, one.dev, judge.best.get(one.name))
