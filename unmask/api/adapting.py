"""Adapt a model to files of examples: once, with several seeds, on folds, or with fewer labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from unmask import adapt, infer, run, screen, tasks, trials
from unmask.adapt import ExamplesRead
from unmask.adapt.resuming import claim
from unmask.adapt.unlabelled import check_unlabelled
from unmask.adapt.ways import task_with, tuned_by, tuning_settings
from unmask.api.paths import Paths, listed
from unmask.api.quickening import keep_dev
from unmask.axes import Task, Tune
from unmask.errors import require
from unmask.progress import Progress, follow
from unmask.recipe_file import file_used_by
from unmask.tasks._rows import format_of
from unmask.tasks.classify import Columns
from unmask.train import log
from unmask.trials import Trial

USUAL = "classify"  # the kind of a file whose columns say nothing
TRIALS = "trials.json"  # the scores of several seeds or folds, in the run folder


@dataclass(frozen=True)
class Adapting:
    """A model, the files of a task, and how the model is trained on it."""

    base: infer.Model
    task: Task
    tune: Tune | None
    read: ExamplesRead
    overwrite: bool
    stop: Callable[[], bool]
    progress: Progress
    dev: tuple[Path, Columns] | None = None  # the file of the dev set
    resume: bool = False  # go on with a training that was cut off
    warm: Callable[[], infer.Model] | None = None  # gives the model to start from, after everything is checked

    @classmethod
    def of(
        cls, base: infer.Model, train: str | Path, *, dev: str | Path | None, task: str | Task | None,
        tune: str | Tune | None, settings: Sequence[str], columns: Columns, overwrite: bool, stop: Callable[[], bool],
        progress: Progress, unlabelled: Paths = (), resume: bool = False, warm: Callable[[], infer.Model] | None = None,
    ) -> Adapting:  # fmt: skip
        require(
            not Path(train).is_dir(),
            "{train} is a folder of tasks, and this works with one task: give the file of one, such as {train}/TASK/train.jsonl",
            train=train,
        )
        of_task, of_tune = tuning_settings(settings)
        found = task or kind_of_file(train, columns)
        chosen = task_with(tasks.get(found) if isinstance(found, str) else found, of_task, tune)
        way, texts = tuned_by(tune, of_tune), listed(unlabelled)
        check_unlabelled(way, bool(texts))  # before any file is read
        read = adapt.read_files(chosen, train, dev, columns, texts)
        if task is None and found != USUAL:
            read.notices.insert(0, f"by its columns, {train} is read as --task {found}")
        of_dev = None if dev is None else (Path(dev), columns)
        return cls(base, chosen, way, read, overwrite, stop, progress, of_dev, resume, warm)

    def whole(self) -> Adapting:
        """The same, with the labels of all examples known: a part of them may lack some."""
        return replace(self, task=self.task.learn(self.read.examples))

    def warmed(self) -> Adapting:
        """The same with the base that `warm` gives. What the training would refuse is refused before that."""
        if self.warm is None:
            return self
        adapt.planned(self.base, self.read.examples, self.read.dev, self.task, self.tune)
        return replace(self, base=self.warm(), warm=None)

    def once(self, trial: Trial) -> dict[str, Any]:
        """One training; returns its last record. Notices about the examples are given with the first one."""
        notices = [{"event": "notice", "text": self.read.notices.pop(0)} for _ in list(self.read.notices)]
        records = adapt.adapt(
            self.base, trial.examples, trial.out, task=self.task, dev=trial.dev, tune=self.tune, seed=trial.seed,
            fresh=trial.fresh, overwrite=self.overwrite, unlabelled=self.read.unlabelled, resume=self.resume, stop=self.stop,
        )  # fmt: skip
        shown = (
            record | {"folds": trial.folds} if trial.folds and "epochs" in record else record for record in records
        )
        return follow(chain(notices, shown), self.progress, partial(screen.training, title=trial.name))

    def opened(self, out: Path) -> infer.Model:
        """The trained model. If it holds only what was trained, it is put on the base that is in memory already."""
        own = run.file_for(out, file_used_by(self.base.recipe))
        if run.read_base(out) is not None:
            return infer.open_on(self.base, out, recipe=own)
        return infer.open_run(out, device=self.base.device, recipe=own)

    def run(self, out: Path, seed: int, fresh: bool, seeds: int, folds: int | None) -> infer.Model:
        """Train, write the report, and open the model."""
        require(seeds >= 1, "--seeds must be 1 or more, got {seeds}", seeds=seeds)
        require(
            folds is None or (seeds == 1 and not self.read.dev),
            "--folds scores each part of the examples by a model of the others: leave --dev and --seeds out",
        )
        require(seeds == 1 and folds is None or not fresh, "--fresh is for one training: leave --seeds and --folds out")
        require(
            not self.resume or (seeds == 1 and folds is None),
            "--resume goes on with one training: leave --seeds and --folds out, or begin again with --overwrite",
        )
        if seeds > 1:
            trials.check_dev(self.read.dev)
        whole = self if folds is None else self.whole()
        if folds is not None:
            trials.split(whole.task.kinds(self.read.examples), folds, seed, whole.task.groups(self.read.examples))
        claim(out, resume=self.resume, overwrite=self.overwrite, base=self.base.folder)  # before any work is done
        return whole.warmed()._train(out, seed, fresh, seeds, folds)

    def _train(self, out: Path, seed: int, fresh: bool, seeds: int, folds: int | None) -> infer.Model:
        found: dict[str, Any] | None = None
        if folds is not None:
            found = trials.cross_validate(self.once, self.opened, self.task, self.read.examples, out, folds, seed)
            require(not found["stopped"], "stopped before the last fold: nothing is written to {out}", out=out)
        elif seeds > 1:
            several = range(seed, seed + seeds)
            found = trials.try_seeds(self.once, self.read.examples, self.read.dev, out, several)
        else:
            name = f"adapting {self.base.folder.name}"
            self.once(Trial(name, self.read.examples, out, self.read.dev, seed, fresh))
        model = self.opened(out)
        if found is not None:
            (out / TRIALS).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if self.dev is not None:
            keep_dev(out, *self.dev)
        history = log.read(out)
        trials.write_report(model, history[-1], history, self.read.dev, found)
        return model

    def curve(self, out: Path, sizes: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Measure and draw the score by the number of labels."""
        require(
            self.tune is None or self.tune.cached is None,
            "--curve trains from random weights too, and tune.cache keeps the vectors of a pretrained network: leave tune.cache out",
        )
        run.claim(out, overwrite=self.overwrite, base=self.base.folder)
        numbers = trials.parse_sizes(sizes, len(self.read.examples))
        found = trials.label_curve(self.whole().warmed().once, self.read.examples, self.read.dev, out, numbers, seeds)
        trials.draw_curve(found, out, f"{self.base.folder.name}: what labels are worth")
        return found

    def rates(self, out: Path, steps: int, seed: int) -> dict[str, Any]:
        """Try growing rates, and draw the loss."""
        require(
            self.tune is None,
            "--find-rate works only if all weights are trained: leave --tune out, or choose its rate with --set rate=VALUE",
        )
        run.claim(out, overwrite=self.overwrite, base=self.base.folder)
        points: list[dict[str, Any]] = []
        base = self.warmed().base

        def kept() -> Iterator[dict[str, Any]]:
            for point in trials.trace_rates(base, self.read.examples, self.task, steps=steps, seed=seed):
                points.append(point)
                yield point

        follow(kept(), self.progress, partial(screen.reading, title="trying rates", over="steps", unit="steps"))
        return trials.draw_rates(points, out, f"{self.base.folder.name}: the loss by the rate")


def kind_of_file(file: str | Path, columns: Columns) -> str:
    """The kind of task that the columns of a file say."""
    found = tasks.kind_of(file, columns)
    require(
        found is not None or format_of(Path(file)) != ".txt" or not Path(file).is_file(),
        "{file}: the columns of a .txt file do not say which task it is for: give --task tag for CoNLL columns, or --task embed "
        "for plain texts",
        file=file,
    )
    return found or USUAL
