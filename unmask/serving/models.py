"""The models of the service, by name. They are opened, replaced and removed while requests are answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from unmask import infer, run
from unmask.api.model import Model
from unmask.api.quickening import opened_fast
from unmask.axes import gives_of
from unmask.errors import UserError, require
from unmask.infer.fast import why_not
from unmask.infer.generation_loop import writes_text
from unmask.infer.text_batches import room_of
from unmask.progress import Tell, tell_notice
from unmask.run_base import read_base
from unmask.serving.refused import Refused
from unmask.tasks import task_of

# what a model that was adapted to a task can do, by the scores that its head gives: the names are Hugging Face's
TASKS: Final[dict[str, str]] = {
    "class scores": "text-classification", "scores of each class": "text-classification",
    "tag scores": "token-classification", "span scores": "question-answering",
}  # fmt: skip
LABELLED: Final = ("class scores", "scores of each class")  # scores that may also mean something else than labels


@dataclass(frozen=True, eq=False)
class Opened:
    """A model with all its weights, and the state of their file when it was opened."""

    model: infer.Model
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, *, device: str | None, half: bool) -> Opened:
        stamp = stamp_of(folder)  # before the file is read: if it changes meanwhile, the model is not shared
        return cls(infer.open_run(folder, device=device, half=half), stamp)

    def is_at(self, folder: Path) -> bool:
        """Whether it holds the weights that are in a folder now."""
        return self.model.folder.resolve() == folder.resolve() and self.stamp == stamp_of(folder)


def stamp_of(folder: Path) -> tuple[int, ...]:
    """What changes when a file of weights is written again; () if there is none."""
    try:
        found = (folder / run.WEIGHTS).stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True, eq=False)
class Served:
    """A model under its name. A request keeps the one that it began with, even if the name is loaded again."""

    name: str
    model: Model
    base: Opened | None = None  # the model whose weights it shares
    opened: Opened | None = None  # its own weights, if it holds them all: others may share them
    created: int = field(default_factory=lambda: int(time.time()))

    @cached_property
    def room(self) -> int:
        """The most tokens of a text; special tokens come on top."""
        return room_of(self.model)

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """What the model can be asked for."""
        recipe, found = self.model.recipe, ["feature-extraction"]
        gives = gives_of(recipe.predict)
        if "token scores" in gives and "both sides" in recipe.see.reading.gives:
            found.append("fill-mask")
        if writes_text(self.model):
            found.append("text-generation")
        task = task_of(recipe)
        if task is not None:
            own = gives_of(recipe.predict.get(task.head))
            found += [
                task for fact, task in TASKS.items() if fact in own and (fact not in LABELLED or self.model.labels)
            ]
            found += ["rerank"] if self._reads_pairs else []
            found.append("answer")
        return tuple(found)

    @property
    def _reads_pairs(self) -> bool:
        """Whether it says how well a text answers a query."""
        task = self.model.recipe.task
        return task is not None and (task.compares or task.texts == 2)


class Models:
    """All models of the service. The first one is the default of routes that name none."""

    def __init__(
        self, given: Mapping[str, Path], *, device: str | None = None, runs: Path | None = None, fast: bool = False,
        half: bool = False, tell: Tell = lambda record: None,
    ) -> None:  # fmt: skip
        """`fast`: encoders have weights in 8 bits. `half`: all weights are in bfloat16. `tell`: as for `unmask.load`."""
        require(runs is None or runs.is_dir(), "--runs must be a folder that holds runs, got {runs}", runs=runs)
        self.device, self.runs, self.fast, self.half, self.tell = "cpu" if fast else device, runs, fast, half, tell
        require(not (fast and half), "--fast is for 8 bits and --half for 16: give one of them")
        require(
            not fast or device in (None, "cpu"),
            "--fast is for a CPU, got --device {device}: leave one of them out",
            device=device,
        )
        self._served: dict[str, Served] = {}
        self._folders = dict(given)
        self._opening = threading.Lock()  # one model is opened at a time
        for name in given:
            self.load(name)

    def names(self) -> list[str]:
        return list(self._served)

    def all(self) -> list[Served]:
        return list(self._served.values())

    def get(self, name: str) -> Served:
        """The model with this name. An unknown name is refused with the known ones."""
        found = self._served.get(name)
        if found is None:
            known = ", ".join(self._served) or "none"
            more = f"; models that can be loaded: {', '.join(self.available()) or 'none'}" if self.runs else ""
            raise Refused(404, f"unknown model {name[:80]!r}: the models are {known}{more}")
        return found

    def able(self, use: str, name: str | None = None) -> Served:
        """The model with this name, or without a name the first one that can do this. Another use is refused."""
        if name is not None:
            found = self.get(name)
            if use not in found.uses:
                able = [one.name for one in self.all() if use in one.uses]
                raise Refused(
                    422,
                    f"the model {name!r} cannot do {use}: it can do {', '.join(found.uses)}; models that can do {use}: "
                    f"{', '.join(able) or 'none'}",
                )
            return found
        first = next((one for one in self.all() if use in one.uses), None)
        if first is None:
            known = "; ".join(f"{one.name} can do {', '.join(one.uses)}" for one in self.all()) or "none is loaded"
            raise Refused(422, f"no model can do {use}: {known}")
        return first

    def available(self) -> list[str]:
        """The names that can be loaded: those given at the start, and the runs in the folder `--runs`."""
        return sorted(self.folders())

    def load(self, name: str) -> Served:
        """Open a model, or open it again if its folder changed. The old one answers until the new one is ready."""
        known = self.folders()
        if name not in known:
            raise Refused(404, f"unknown run {name[:80]!r}: the runs are {', '.join(sorted(known)) or 'none'}")
        with self._opening:
            served = self._opened(name, known[name])
            self._served = self._placed(served)
        return served

    def unload(self, name: str) -> None:
        self.get(name)
        self._served = self._without(name)

    def _placed(self, served: Served) -> dict[str, Served]:
        """The models with a new one: in the place of the old one, because the first one is the default, or at the end."""
        new, before = {served.name: served, **_tasks(served)}, list(self._served)
        others = self._without(served.name)
        at = before.index(served.name) if served.name in self._served else len(before)
        first = {name: one for name, one in others.items() if before.index(name) < at}
        return first | new | others

    def _without(self, name: str) -> dict[str, Served]:
        """The models without one, and without its tasks."""
        before = self._served.get(name)
        gone = {name, *(_tasks(before) if before else ())}
        return {other: one for other, one in self._served.items() if other not in gone}

    def folders(self) -> dict[str, Path]:
        """The folders by name. A name of a request is only looked up here: no path is made from it."""
        inside = self.runs.iterdir() if self.runs else ()
        return {folder.name: folder for folder in inside if (folder / run.RECIPE).is_file()} | self._folders

    def _opened(self, name: str, folder: Path) -> Served:
        """A model; if it holds only what was trained, on the weights of a base that is open already."""
        base = read_base(folder)
        if base is None:
            own = Opened.of(folder, device=self.device, half=self.half)
            return Served(name, self._quickened(own.model), opened=own)
        place = base.found(folder)
        known = [one for served in self.all() for one in (served.opened, served.base) if one is not None]
        below = next((one for one in known if one.is_at(place)), None)
        below = below or Opened.of(place, device=self.device, half=self.half)
        return Served(name, self._quickened(infer.open_on(below.model, folder)), below)

    def _quickened(self, model: infer.Model) -> Model:
        """With --fast, the model with weights in 8 bits if it can have them; otherwise the reason is told."""
        if not self.fast:
            return Model.of(model)
        try:
            why = why_not(model)
            if why is None:
                return Model.of(opened_fast(model, self.tell))
        except UserError as error:  # its network cannot be written as ONNX
            why = str(error)
        tell_notice(f"{model.folder} stays in float32: {why}", self.tell)
        return Model.of(model)


def _tasks(served: Served) -> dict[str, Served]:
    """The tasks of a model with several: each is a model with the name NAME.TASK, on the same weights."""
    names = {f"{served.name}.{task}": task for task in served.model.tasks}
    return {name: Served(name, served.model.task(task), served.base) for name, task in names.items()}


def named(given: list[str]) -> dict[str, Path]:
    """The folders of runs by name: the name of the folder, or NAME in NAME=FOLDER."""
    found: dict[str, Path] = {}
    for one in given:
        name, _, path = one.rpartition("=")
        folder = Path(path)
        name = name or folder.resolve().name
        if name in found:
            raise UserError(
                "{first} and {second} have the same name {name!r}: give one of them another, such as {name}-2={second}",
                first=found[name],
                second=folder,
                name=name,
            )
        require(
            "/" not in name and bool(name),
            "the name of a model must not be empty or hold a '/', got {name!r}",
            name=name,
        )
        found[name] = folder
    return found
