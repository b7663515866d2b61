"""Run a command of a stage by the Python API. A pretraining that was cut off goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from unmask import run, screen
from unmask.api.corpus import prepare, train_tokenizer
from unmask.api.graphs import triples
from unmask.api.runs import load, pretrain
from unmask.comparison.job import main_score
from unmask.pipeline.call import Call
from unmask.progress import Progress, follow

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
            "tokenizer": self._tokenizer, "triples": self._triples, "prepare": self._prepare, "pretrain": self._pretrain,
            "adapt": self._adapt, "evaluate": self._evaluate,
        }  # fmt: skip
        return ways[call.verb](call)

    def _tokenizer(self, call: Call) -> dict[str, Any]:
        made = train_tokenizer(list(call.words), **given(call), tell=self._tell)
        return {"tokens": made.vocabulary.size}

    def _triples(self, call: Call) -> dict[str, Any]:
        made = triples(list(call.words), **given(call), tell=self._tell)
        return {"pairs": made["pairs"]}

    def _prepare(self, call: Call) -> dict[str, Any]:
        return {"tokens": prepare(list(call.words), **given(call), progress=self.progress)["tokens"]}

    def _pretrain(self, call: Call) -> dict[str, Any]:
        words = [str(word) for word in call.words]
        recipe, data = cast(str | None, words[0]), words[1:]
        options, out = given(call), Path(str(call.out))
        earlier = run.request_of(out)
        if earlier is not None and all(
            (Path(one)).is_dir() for one in earlier["data"]
        ):  # its data is still in the cache
            options = {name: value for name, value in options.items() if name in ("out", "device")}
            model = pretrain(None, (), **options, resume=True, stop=self.stop, progress=self.progress)
        else:
            model = pretrain(recipe, data, **options, resume=True, stop=self.stop, progress=self.progress)
        last = model.history[-1]
        if last.get("stopped"):
            raise Stopped
        found = {"steps": last["step"], "tokens": last["tokens"], "seconds": last["seconds"], "loss": last["loss"],
                 "held_out_loss": last.get("validation_loss")}  # fmt: skip
        curve = [(one["seconds"], one["loss"]) for one in model.history if "loss" in one]
        return found | {"curve": curve}

    def _adapt(self, call: Call) -> dict[str, Any]:
        base, train = call.words
        options = given(call)
        model = load(base, device=options.pop("device", None), tell=self._tell)
        options |= {
            "overwrite": True,
            "stop": self.stop,
            "progress": self.progress,
        }  # one that was cut off begins again
        last = model.adapt(train, **options).history[-1]
        if last.get("stopped"):
            raise Stopped
        return {"steps": last["step"], "seconds": last["seconds"], "dev_score": last.get("kept_score")}

    def _evaluate(self, call: Call) -> dict[str, Any]:
        folder, file = call.words
        options = given(call)
        model = load(folder, device=options.pop("device", None), tell=self._tell)
        return {"score": main_score(model.evaluate(file, **options, tell=self._tell))}

    @contextmanager
    def _followed(self, call: Call) -> Iterator[Progress]:
        """How a training is followed: drawn with the name of its run, without the commands that it stands for."""
        if self.progress is not True:
            yield self.progress
            return
        with screen.drawn(Path(str(call.out)).name.rpartition("-")[0]) as show:
            yield lambda record: None if record.get("event") == "commands" else show(record)

    def _tell(self, record: dict[str, Any]) -> None:
        follow([record], self.progress, screen.staging)


def given(call: Call) -> dict[str, Any]:
    """The options of a command as the arguments of the Python function; those that are not given are left out."""
    wanted: Mapping[str, Any] = {name: value for name, value in call.options.items() if value not in (None, False, [])}
    return {_NAMES.get(name, name.removeprefix("--")): value for name, value in wanted.items()}
