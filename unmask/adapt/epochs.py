"""Train a model on the examples of a task for some epochs, and save the best weights in a run folder."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from unmask import run
from unmask.adapt.phases import Phase, about, parameters, phases_of
from unmask.adapt.resuming import READS, saved_record
from unmask.axes import gives_of, needs_of
from unmask.data.examples import Examples
from unmask.data.pack import Rows
from unmask.data.pack_examples import Packing, can_pack
from unmask.infer.model import Model
from unmask.recipe import Recipe
from unmask.system import weights
from unmask.system.tuned import only_train
from unmask.tasks._training import Hyperparameters
from unmask.train import Fixed, Intervals, LoopStage, Trainer, checkpoint, train, training_machine
from unmask.train.log import Log, until

UNPACKED = "unpacked rows"  # the need of heads that read whole rows
WIDTHS = 16  # most widths of batches, about, where steps are recorded: each width has its own recording
_DEV = "validation_"  # the prefix that the training loop gives to the names of scores


def of_dev(notes: Counter[str]) -> dict[str, int]:
    """The notes about the dev examples, marked as such. The best epoch is chosen by its score on these examples."""
    return {f"{name} (dev)": count for name, count in notes.items()}


Opened = Callable[
    [dict[str, Any] | None, int | None], Any
]  # a source of batches, at a state, with at most so many widths


@dataclass(frozen=True)
class ToRead:
    """What an adaptation reads."""

    examples: int
    rows: int  # a long text, or a list of passages, has several
    batch: int  # rows in a step
    steps: int  # in an epoch
    legs: tuple[tuple[float, Opened], ...]  # in order: the share of all steps at the end of each, and how it is opened
    fingerprint: str = ""  # of the examples
    notices: tuple[str, ...] = ()  # what a user should know about it
    shown: str | None = None  # the loss that is shown for an epoch; None: the sum of all


def packing_of(recipe: Recipe, rows: Rows) -> Packing | None:
    """How examples of a task share a row; None: each text needs a row of its own.

    Rules that hide tokens at random, and decoders, have a budget or a text for each row."""
    alone = UNPACKED in needs_of(recipe.system) or {"covered", "decoder rows"} & gives_of(recipe.hide)
    if alone or not can_pack(rows):
        return None
    apart = len(rows.ids) > len(rows) or UNPACKED in needs_of(recipe.predict)
    return Packing(recipe.schedule[0].length, apart)


def of_one_task(rows: Rows, examples: int, batch: int, seed: int, packing: Packing | None = None) -> ToRead:
    """The rows of one task, in a new order in each epoch. `batch`: examples in a step. `packing`: see `packing_of`."""
    batch = min(batch, len(rows))

    def opened(state: dict[str, Any] | None, widths: int | None) -> Examples:
        return Examples(rows, seed, state, widths=widths, packing=packing)

    return ToRead(examples, len(rows), batch, max(1, round(len(rows) / batch)), ((1.0, opened),))


def rounds(
    model: Model,
    reading: ToRead,
    plan: Hyperparameters,
    *,
    base: run.Base | None = None,
    notes: Counter[str],
    seed: int,
    start: dict[str, Any],
    validate: Callable[[], dict[str, float]] | None,
    stop: Callable[[], bool],
    remarks: Callable[[], list[str]] = list,
    resume: bool = False,
) -> Iterator[dict[str, Any]]:
    """Train a model on the examples of its task, or of several tasks, yielding records. Its run folder is replaced by one with the best weights.

    The first record is the event `start`. The record at the end of an epoch has `epoch`, `epoch_loss` and `kept`: whether
    its weights are the best so far. The last record has the scores of all `epochs`, the scores of `kept_epoch` (None if
    training stopped before an epoch ended) and its `kept_score` (None without a dev set), the values of `start`, and the `notices`, which `remarks` returns. All records
    are written to the log of the run. `base`: the run holds only what was trained, and this is its base. `resume`: go on from
    the last checkpoint, if there is one; the first record is then the one that was saved with it."""
    out, system = model.folder, model.system
    last = saved_record(out, model.recipe, reading.fingerprint, students=bool(system.students)) if resume else None
    epochs = Epochs(reading.steps, reading.shown)
    steps = max(1, round(plan.epochs * epochs.steps))
    phases = phases_of(model.recipe, system, epochs.steps, steps, alone=base is not None)
    if last is None:
        own = {run.BASE: dataclasses.asdict(base)} if base else {}
        run.create(out, model.recipe, model.tokenizer, more=own, graph=model.graph)
    machine = training_machine(model.device, recorded=system.features is None)  # features are on disk
    trainer = Trainer(system, model.recipe.optimise, machine, seed)
    losses = weights(model.recipe, model.recipe.schedule[0])
    widths = WIDTHS if machine.recorded else None
    legs = [
        LoopStage(end, reading.batch, reading.batch, partial(_opened, system, phase, opened, widths), losses)
        for end, phase, opened in _legs(phases, reading)
    ]
    pace = Intervals(log=max(1, min(50, steps // 20)), save=epochs.steps)
    earlier = until(out, last)[:-1]
    log = Log(out, kept=earlier)

    def started() -> Iterator[dict[str, Any]]:
        yield {"event": "start", "steps": steps, "steps_per_epoch": epochs.steps, "examples": reading.examples, "rows": reading.rows,
               "notes": dict(notes), "plan": dataclasses.asdict(plan), READS: reading.fingerprint} | parameters(system, phases[-1]) | start  # fmt: skip
        said = (*about(model.recipe, system, epochs.steps, steps), *reading.notices)
        yield from ({"event": "notice", "text": text} for text in said)

    def resumed() -> Iterator[dict[str, Any]]:
        assert last is not None
        for record in earlier:
            if "step" in record:
                epochs.seen(record)
        if validate is not None and any(f"{_DEV}score" in record for record in (*earlier, last)):
            checkpoint.load_weights(system, out / checkpoint.WEIGHTS)
            system.eval()
            validate()  # so that it knows the answers of the best weights so far
        yield last

    def records() -> Iterator[dict[str, Any]]:
        if last is None:
            yield from started()
        steps_done = train(trainer, legs, Fixed(steps), folder=out, pace=pace, keep="best", validate=validate, stop=stop, resume=resume)  # fmt: skip
        stopped = False
        for record in steps_done if last is None else chain(resumed(), steps_done):
            record = epochs.seen(record)
            stopped = "stopped" in record
            ended = {"epochs": epochs.scores, "kept_epoch": epochs.kept, "kept_score": epochs.kept_score,
                     "validated": validate is not None} | start  # fmt: skip
            early = epochs.ends_early(plan.patience) and not record.keys() & {"done", "stopped"}
            if "done" in record or early:
                yield record | ended | {"done": True, "early": early, "notices": remarks()}
            else:
                yield record | ended if "stopped" in record else record
            if early:
                break
        if not (out / checkpoint.WEIGHTS).is_file():  # stopped before the first validation
            checkpoint.save_declared(system, out / checkpoint.WEIGHTS)
        if not stopped:
            checkpoint.drop_state(out)

    try:
        for record in records():
            log.write(record)
            yield record
    finally:
        log.close()


def _legs(phases: list[Phase], reading: ToRead) -> list[tuple[float, Phase, Opened]]:
    """The end, the phase and the source of each leg. Either the parameters that train change, or what is read, not both."""
    if len(reading.legs) == 1:
        return [(phase.until, phase, reading.legs[0][1]) for phase in phases]
    assert len(phases) == 1, "several tasks are trained in one phase"
    return [(until, phases[0], opened) for until, opened in reading.legs]


def _opened(system: Any, phase: Phase, opened: Opened, widths: int | None, state: dict[str, Any] | None) -> Any:
    """The source of a phase. When the phase begins, its parameters begin to train."""
    if phase.names is not None:
        only_train(system, phase.names)
    return opened(state, widths)


class Epochs:
    """Finds the records at which an epoch ends, and collects the scores of all epochs."""

    def __init__(self, steps: int, shown: str | None = None) -> None:
        self.steps, self.shown = steps, shown  # steps in an epoch; the loss that is shown
        self.scores: list[dict[str, float]] = []  # the scores of every epoch
        self.kept: dict[str, float] | None = None  # the scores of the epoch whose weights are saved
        self.at, self.losses, self.best = 0, [0.0, 0.0], -math.inf

    @property
    def kept_score(self) -> float | None:
        """The score by which the best epoch is chosen."""
        return self.best if math.isfinite(self.best) else None

    def ends_early(self, patience: int) -> bool:
        """Whether so many epochs had no better dev score."""
        if not patience or self.kept_score is None or self.kept is None:
            return False
        return len(self.scores) - 1 - self.scores.index(self.kept) >= patience

    def seen(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record, with `epoch`, `epoch_loss` and `kept` if an epoch ends with it."""
        steps, self.at = record["step"] - self.at, record["step"]
        # the loss of a record is the mean over its steps
        loss = record["loss"] if self.shown is None else record.get(f"loss_{self.shown}")
        if loss is not None:
            self.losses = [self.losses[0] + loss * steps, self.losses[1] + steps]
        if record["step"] % self.steps and not record.get("done"):
            return record
        epoch = {
            "epoch": _whole(record["step"] / self.steps),
            "loss": self.losses[0] / self.losses[1] if self.losses[1] else record["loss"],
        }
        self.losses = [0.0, 0.0]
        found = {name.removeprefix(_DEV): value for name, value in record.items() if name.startswith(_DEV)}
        score = found.pop("score", math.inf)  # without a dev set the last weights are saved
        self.scores.append(epoch | {f"dev_{name}": value for name, value in found.items()})
        kept = score > self.best or score == math.inf
        if kept:
            self.best, self.kept = score, self.scores[-1]
        return record | {"epoch": epoch["epoch"], "epoch_loss": epoch["loss"], "kept": kept}


def _whole(number: float) -> float:
    return int(number) if number == int(number) else round(number, 2)
