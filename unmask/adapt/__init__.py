"""Adapt a pretrained model to a task: one function for every kind of task and every way of tuning.

A way of tuning is a file of this package with a dataclass of its name (`unmask.axes.Tune`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unmask import run
from unmask.adapt._get import get
from unmask.adapt.data_notices import data_notices
from unmask.adapt.epochs import of_dev, of_one_task, packing_of, rounds
from unmask.adapt.features import cached_features
from unmask.adapt.inherit import inherit
from unmask.adapt.resuming import claim, fingerprint
from unmask.adapt.special_tokens import with_special_tokens
from unmask.adapt.unlabelled import Texts, check_unlabelled, read_unlabelled, with_texts
from unmask.axes import Judged, Task, Tune
from unmask.counted import counted
from unmask.data.loader import track_seed
from unmask.errors import require
from unmask.infer.answer import TaskReader
from unmask.infer.likelihood import machine_of
from unmask.infer.model import Model
from unmask.infer.passes import laid_out
from unmask.init_weights import Undrawn
from unmask.recipe import Recipe
from unmask.system.single import draw_head
from unmask.system.tuned import add_students, put_in
from unmask.tasks._track import learned
from unmask.tasks.classify import Columns
from unmask.tasks.seen_examples import save_seen

__all__ = ["ExamplesRead", "adapt", "get", "inherit", "new_model", "planned", "read_files"]


@dataclass(frozen=True)
class ExamplesRead:
    """The examples of files, and what a user should know about them."""

    examples: list[Any]
    dev: list[Any]
    notices: list[str]
    unlabelled: list[Any] = field(
        default_factory=list
    )  # texts without labels, for a way of tuning that learns from them


def read_files(
    task: Task, train: str | Path, dev: str | Path | None = None, columns: Columns | None = None,
    unlabelled: Sequence[str | Path] = (),
) -> ExamplesRead:  # fmt: skip
    """Read the files of a task. `unlabelled`: files and folders of texts without labels."""
    read = [task.read(Path(file), columns) if file else ([], Counter[str]()) for file in (train, dev)]
    (examples, _), (held, _) = read
    described = filter(None, [task.described(Path(file), columns) for file in (train, dev) if file])
    said = [counted(count, note) for _, notes in read for note, count in notes.items()]
    texts = read_unlabelled(task, unlabelled, columns) if unlabelled else []
    known = learned(task, examples, train)
    return ExamplesRead(examples, held, [*described, *said, *data_notices(known, examples, held)], texts)


def adapt(
    base: Model, examples: Sequence[Any], out: str | Path, *, task: Task, dev: Sequence[Any] = (),
    tune: Tune | None = None, seed: int = 0, fresh: bool = False, overwrite: bool = False, unlabelled: Sequence[Any] = (),
    resume: bool = False, stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Adapt a model, yielding records (see `rounds`). With `dev`, the weights of the best epoch on `dev` are saved.

    `tune`: which weights are trained; None: all of them. `fresh` starts from random weights instead of the pretrained ones,
    as a control without pretraining. `unlabelled`: examples without labels, for a way of tuning that learns from them.
    `resume`: go on with an adaptation in `out` that was cut off; the other values must be the same."""
    check_unlabelled(tune, bool(unlabelled))
    (base, recipe), out = planned(base, examples, dev, task, tune), Path(out)
    claim(out, resume=resume, overwrite=overwrite, base=base.folder)
    assert recipe.task is not None
    task = recipe.task.made(examples=len(examples), seed=seed, fresh=fresh)
    model = new_model(base, recipe.replace(task=task), out, seed, fresh)
    rows, notes = laid_out(model, task.lay_out(examples))
    rows_of_dev = []
    if dev:
        held, noted = laid_out(model, task.lay_out(dev))
        rows_of_dev = [held]
        notes.update(of_dev(noted))
    plan = task.hyperparameters(base.recipe)
    still = tune is not None and tune.still  # its vectors may be cached by row; a cache must not change what is learned
    packing = None if still or unlabelled else packing_of(model.recipe, rows)
    reading = replace(
        of_one_task(rows, len(examples), plan.examples, seed, packing), fingerprint=fingerprint([rows, *rows_of_dev])
    )
    if tune is not None and unlabelled:
        texts = Texts(unlabelled, tune.turns, plan.epochs)
        reading = with_texts(reading, texts, model, task, seed)
    start = task.baseline(dev or examples)
    start |= {"baseline_of": "dev" if dev else "train"} if "baseline" in start else {}
    judge = _Judge(model, task, dev)
    below = run.Base.of(base.folder, out) if tune is not None and tune.alone and not fresh else None
    if tune is not None and tune.cached is not None:
        require(
            below is not None,
            "tune.cache keeps the vectors of a pretrained network, got --fresh: leave one of them out",
        )
        assert below is not None
        model.system.features = cached_features(model, [rows, *rows_of_dev], tune.cached, below.sha256)
    yield from rounds(
        model, reading, plan, base=below, notes=notes, seed=seed, start=start, validate=judge if dev else None, stop=stop,
        remarks=lambda: task.notices(TaskReader(model), examples, dev, judge.best), resume=resume,
    )  # fmt: skip
    save_seen(out, (task, examples))


def planned(
    base: Model, examples: Sequence[Any], dev: Sequence[Any], task: Task, tune: Tune | None
) -> tuple[Model, Recipe]:
    """The base with the special tokens of a task, and the recipe that is trained. Refuses what does not fit together."""
    check_base(base)
    task = task.learn(examples)
    for some in (examples, dev):
        task.check(some, "the first training example")
    base = with_special_tokens(base, task, tune)
    recipe = _recipe(base, task, tune, len(examples))
    patience = task.hyperparameters(base.recipe).patience
    require(
        not patience or bool(dev),
        "patience={patience} ends the training by the scores on a dev set, and there is none: give --dev FILE, or leave "
        "patience out",
        patience=patience,
    )
    return base, recipe


def check_base(base: Model) -> None:
    """Refuse a base with modules that a new network would not have."""
    tune = base.recipe.tune
    require(
        tune is None or tune.plain,
        "{folder} was tuned with {tune}, which added modules to its network: adapt the run that it was tuned from",
        folder=base.folder,
        tune=type(tune).__name__,
    )


def _recipe(base: Model, task: Task, tune: Tune | None, examples: int) -> Recipe:
    """The recipe of the task for this number of examples, changed for a way of tuning."""
    chosen = task if tune is None else tune.task(task, base.recipe)
    made: Recipe = chosen.sized(examples, base.recipe).recipe(base)
    return (made if tune is None else tune.recipe(made)).replace(tune=tune)


def head_seeds(recipe: Recipe, seed: int) -> dict[str, int]:
    """The names of the heads of a recipe with several tasks, each with its own seed."""
    heads = [name for track in recipe.tracks.values() for name in track.own]
    return {name: track_seed(seed, name, number) for number, name in enumerate(heads, 1)}


def new_model(base: Model, recipe: Recipe, out: Path, seed: int, fresh: bool) -> Model:
    """The model to train: it has the weights of the pretrained model (unless `fresh`) and a new head, or one for each of
    several tasks."""
    news = {recipe.task.head: seed} if recipe.task is not None else head_seeds(recipe, seed)
    with nullcontext() if fresh else Undrawn():
        system = recipe.system.build(recipe, base.tokenizer.vocabulary, seed)
    if not fresh:
        for name, own in news.items():
            draw_head(system, recipe, name, own)
        inherit(system, base, [name for name in news if name])
    if recipe.tune is not None:
        put_in(system, recipe.tune, seed)
        add_students(system, recipe.tune, recipe, seed)
    return Model(system, recipe, base.tokenizer, out, base.device, graph=base.graph)


class _Judge:
    """Scores a model on the dev set after each epoch, and remembers the best."""

    def __init__(self, model: Model, task: Task, dev: Sequence[Any]) -> None:
        self.model, self.task, self.dev = model, task, dev
        self.best: Judged | None = None

    def __call__(self) -> dict[str, float]:
        with machine_of(self.model).autocast():
            found = self.task.judge(TaskReader(self.model), self.dev)
        if self.best is None or found.score > self.best.score:
            self.best = found
        return {"score": found.score} | found.scores
