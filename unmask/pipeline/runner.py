"""Run a command of a stage by the Python API. A pretraining that was cut off goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from unmask import run, screen
from unmask.api.corpus import prepare, train_tokenizer
from unmask.api.graphs import graph, triples
from unmask.api.model import Model
from unmask.api.runs import load, pretrain
from unmask.comparison.job import main_score
from unmask.errors import UserError
from unmask.pipeline.call import Call
from unmask.progress import Progress, follow
from unmask.recipe_file import is_path
from unmask.tasks import task_of

ONE = ""  # the name of the task of a stage that has only one
# options of the command line whose names in Python are others
_NAMES = {"--from": "start", "--set": "settings", "--for": "recipe"}


class Stopped(Exception):
    """The user stops the pipeline. It goes on with the same command."""


class Runner(Protocol):
    """Runs a command, and returns what is known of its result, as JSON."""

    def __call__(self, call: Call) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ApiRunner:
    """Runs commands in this process."""

    stop: Callable[[], bool] = lambda: False
    progress: Progress = True

    def __call__(self, call: Call) -> dict[str, Any]:
        ways: dict[str, Callable[[Call], dict[str, Any]]] = {
            "tokenizer": self._tokenizer, "triples": self._triples, "prepare": self._prepare, "graph": self._graph, "pretrain": self._pretrain,
            "adapt": self._adapt, "evaluate": self._evaluate,
        }  # fmt: skip
        if self.stop():
            raise Stopped
        try:
            return ways[call.verb](call)
        except UserError:
            if self.stop():  # it was stopped while it prepared its text
                raise Stopped from None
            raise

    def _tokenizer(self, call: Call) -> dict[str, Any]:
        made = train_tokenizer(list(call.words), **given(call), tell=self._tell)
        return {"tokens": made.vocabulary.size}

    def _triples(self, call: Call) -> dict[str, Any]:
        made = triples(list(call.words), **given(call), tell=self._tell)
        return {"pairs": made["pairs"]}

    def _prepare(self, call: Call) -> dict[str, Any]:
        return {"tokens": prepare(list(call.words), **given(call), progress=self.progress)["tokens"]}

    def _graph(self, call: Call) -> dict[str, Any]:
        return {"entities": len(graph(list(call.words), **given(call), progress=self.progress).entities)}

    def _pretrain(self, call: Call) -> dict[str, Any]:
        recipe, *data = map(str, call.words)
        options, out = given(call), Path(str(call.out))
        asked: dict[str, Any] = {"recipe": recipe, "data": data, **options}
        if _can_resume(out):
            own = run.file_for(out, recipe if is_path(recipe) else None)
            device = {"device": options["device"]} if "device" in options else {}
            asked = {"recipe": None, "data": (), "out": out, "recipe_file": own, **device}
        with self._followed(out) as progress:
            model = pretrain(**asked, resume=True, stop=self.stop, progress=progress)
        last = model.history[-1]
        if last.get("stopped"):
            raise Stopped
        found = {"steps": last["step"], "tokens": last["tokens"], "seconds": last["seconds"], "loss": last["loss"],
                 "held_out_loss": last.get("validation_loss")}  # fmt: skip
        return found | {"curve": _curve(model.history)}

    def _adapt(self, call: Call) -> dict[str, Any]:
        base, train = call.words
        options = given(call)
        model = self._loaded(base, options)
        with self._followed(Path(str(call.out))) as progress:  # an adaptation that was cut off begins again
            last = model.adapt(train, **options, overwrite=True, stop=self.stop, progress=progress).history[-1]
        if last.get("stopped"):
            raise Stopped
        return {"steps": last["step"], "seconds": last["seconds"], "dev_score": last.get("kept_score")}

    def _evaluate(self, call: Call) -> dict[str, Any]:
        folder, file = call.words
        options = given(call)
        model = self._loaded(folder, options)
        if Path(file).is_dir():
            scores = model.evaluate_tasks(file, tell=self._tell)
            return {"scores": {name: one["main"] for name, one in scores.items()}}
        return {"scores": {ONE: main_score(model.evaluate(file, **options, tell=self._tell), task_of(model.recipe))}}

    def _loaded(self, folder: str | Path, options: dict[str, Any]) -> Model:
        """The model in a run folder. Takes the options of loading out of `options`."""
        return load(folder, device=options.pop("device", None), recipe=options.pop("recipe", None), tell=self._tell)

    @contextmanager
    def _followed(self, out: Path) -> Iterator[Progress]:
        """How a training is followed: drawn with the name of its run, without the commands that it stands for."""
        if self.progress is not True:
            yield self.progress
            return
        with screen.drawn(out.name.rpartition("-")[0]) as show:
            yield lambda record: None if record.get("event") == "commands" else show(record)

    def _tell(self, record: dict[str, Any]) -> None:
        follow([record], self.progress, screen.staging)


def _curve(history: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """The loss by the seconds of training. If tracks take turns, every step has another kind of loss: then the held-out one."""
    name = "validation_loss" if len(history[-1].get("turns", ())) > 1 else "loss"
    return [(one["seconds"], one[name]) for one in history if name in one]


def _can_resume(out: Path) -> bool:
    """Whether a pretraining was begun, and its data is still there."""
    earlier = run.request_of(out)
    return earlier is not None and all(Path(one).is_dir() for one in earlier["data"])


def given(call: Call) -> dict[str, Any]:
    """The options of a command as the arguments of the Python function; those that are not given are left out."""
    wanted: Mapping[str, Any] = {name: value for name, value in call.options.items() if value not in (None, False, [])}
    return {_NAMES.get(name, name.removeprefix("--")): value for name, value in wanted.items()}
