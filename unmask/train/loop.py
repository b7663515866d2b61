"""The loop: one plain generator that trains a system and yields a record per log step. It knows only `system`."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from unmask import chance, curves
from unmask.axes import Curve, Hide, Optimise
from unmask.batch import Batch
from unmask.errors import UserError
from unmask.recipe import MAIN
from unmask.train import checkpoint
from unmask.train.average import average_of
from unmask.train.cuda_graph import Graphed, GraphedGradients
from unmask.train.machine import Machine
from unmask.train.plan import Moment, Plan, Planner, leg_at

Rules = Hide | tuple[Hide, ...]
MINIMISED = "minimised"  # an extra entry next to the losses: their sum, each with its weight and scale
GRADIENT = "gradient"  # the norm of the gradient before clipping


class BatchSource(Protocol):
    """A source of batches."""

    def batch(self, rows: int) -> Batch: ...

    def state(self) -> dict[str, Any]: ...

    def after_stage(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class LoopStage:
    """A stage as the loop runs it."""

    until: float  # progress at the end of the stage; 1.0 for the last stage
    rows: int  # per step
    micro: int  # rows per micro-batch
    open: Callable[[dict[str, Any] | None], BatchSource]  # opens its source of batches at a state
    weights: dict[str, float | Curve] = field(default_factory=dict)  # of each loss; 1 if none is given
    hide: Rules | None = None  # what this stage hides; None: what the recipe hides


class Diverged(UserError):
    """The loss is no longer a number."""


class Trainer:
    """A system, its optimiser and the machine: runs single training steps."""

    def __init__(self, system: Any, optimise: Optimise, machine: Machine, seed: int) -> None:
        self.system, self.optimise, self.machine, self.seed = system.to(machine.device), optimise, machine, seed
        self.optimiser = optimise.build(system)
        self.average = average_of(self.system, optimise.average)
        hide = torch.compile(system.hide, dynamic=False) if machine.compiled else system.hide
        self.hide: Callable[..., Any] = Graphed(hide) if machine.recorded else hide
        self.run: Callable[..., Any] = GraphedGradients(self._run, system) if machine.recorded else self._run
        self.system.compile_parts(machine.compiled)
        self.memory: dict[int | str, Any] = {}  # the memory of the network between steps: see `memory_key`

    def gradients(
        self, batches: list[Batch], weights: dict[str, float], step: int, hide: Rules | None = None, done: float = 0.0
    ) -> dict[str, Tensor]:
        """Compute exact gradients of the mean losses over all micro-batches; returns the means and their weighted sum, detached.

        `hide`: what this stage hides; None: what the recipe hides. `done`: the share of the training that is done."""
        chance.seed_torch(reseed(self.seed, step), device=self.machine.device)
        self.optimiser.zero_grad(set_to_none=True)
        progress = torch.full((), done, device=self.machine.device)
        moved = [batch.to(self.machine.device, non_blocking=True).replace(progress=progress) for batch in batches]
        prepared = [self.hide(batch, hide) for batch in moved]
        counts = {
            n: sum(c[n] for _, c in prepared if n in c).clamp(min=1)
            for n in dict.fromkeys(n for _, c in prepared for n in c)
        }
        scales = {name: weights.get(name, 1.0) / count for name, count in counts.items()}
        totals: dict[str, Tensor] = {}
        for index, (batch, _) in enumerate(prepared):
            key = memory_key(batch, index)
            found, self.memory[key] = self.run(batch, self.memory.get(key), scales)
            totals = {name: totals.get(name, 0.0) + total for name, total in found.items()}
        return {name: total / counts.get(name, 1) for name, total in totals.items()}

    def _run(self, batch: Batch, memory: Any, scales: dict[str, Tensor]) -> tuple[dict[str, Tensor], Any]:
        """One forward and backward pass. Adds to the gradients; returns the totals with the minimised sum, and the memory."""
        with self.machine.autocast():
            losses, memory = self.system.step(batch, memory)
        learned = {name: 1.0 if loss.scale is None else loss.scale for name, loss in losses.items()}
        minimised: Any = sum(loss.total * scales[name] * learned[name] for name, loss in losses.items())
        minimised.backward()
        return {name: loss.total.detach() for name, loss in losses.items()} | {MINIMISED: minimised.detach()}, memory

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """A context without compiled or recorded code, for work that is done once or rarely."""
        ways = (self.hide, self.run)
        self.hide, self.run = self.system.hide, self._run
        self.system.compile_parts(False)
        try:
            yield
        finally:
            self.hide, self.run = ways
            self.system.compile_parts(self.machine.compiled)

    @property
    def averaged(self) -> dict[str, Tensor] | None:
        """The averaged weights, by name; None if they are not averaged, or not yet."""
        return None if self.average is None or not self.average.begun else self.average.values

    def update(self, moment: Moment) -> tuple[float, Tensor]:
        """Update the weights; returns the learning rate and the norm of the gradient before clipping."""
        limit = self.optimise.clip if self.optimise.clip is not None else math.inf
        norm = nn.utils.clip_grad_norm_(self.system.parameters(), limit)
        rate = self.optimise.set(self.optimiser, moment)
        self.optimiser.step()
        if self.average is not None:
            self.average.add(moment)
        return rate, norm


@dataclass(frozen=True)
class Intervals:
    """How often to log, to validate and to save."""

    log: int | None = None  # steps between log records; None: 1% of all steps, at most 50
    save: int | None = None  # steps between validations, with checkpoints; None: 5% of all steps, at least 10
    seconds: float = 900.0  # most seconds between checkpoints
    # seconds; a checkpoint that takes longer is skipped at a validation if checkpoints would take over 5% of the time
    cheap: float = 0.25

    def of(self, plan: Plan) -> tuple[int, int]:
        """The steps between log records, and between validations, for a plan."""
        return self.log or max(1, min(50, plan.steps // 100)), self.save or max(10, plan.steps // 20)


def train(
    trainer: Trainer,
    legs: list[LoopStage],
    planner: Planner,
    *,
    folder: Path | None,
    pace: Intervals = Intervals(),  # noqa: B008
    keep: Literal["last", "best"] = "last",
    resume: bool = False,
    validate: Callable[[], dict[str, float]] | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[dict[str, Any]]:
    """Train through all stages (`legs`) and yield a record per log step; the last record has `done`.

    `keep`: publish the `last` weights, or the `best`, those with the highest `score` from `validate`.
    When `stop` returns true, the state is saved and the last record has `stopped`.
    """
    at: dict[str, Any] = {"step": 0, "tokens": 0, "seconds": 0.0, "best": None, "source": None, "begins": True}
    if resume and folder is not None and checkpoint.newest(folder) is not None:
        kept = None if trainer.average is None else trainer.average.values
        at = checkpoint.load_state(folder, trainer.system, trainer.optimiser, trainer.memory, kept)
        if trainer.average is not None:
            trainer.average.resume(at.get("average", {}))
    step, tokens, best, position = at["step"], at["tokens"], at["best"], at["source"]
    began, saved, saving = clock() - at["seconds"], clock(), 0.0
    meter, ends = _Meter(trainer, folder), [leg.until for leg in legs]
    current, source, begins = -1, None, at["begins"]
    while step < planner.plan(step).steps:
        moment = planner.plan(step).moment(step + 1)
        number = leg_at(ends, moment)
        leg = legs[number]
        if number != current:
            if begins:  # the stage begins here, and was not resumed: the memory belongs to other rows
                trainer.memory.clear()
            source, current = leg.open(position), number
            trainer.system.train()
        assert source is not None
        batches = [source.batch(rows) for rows in _portions(leg.rows, leg.micro)]
        step += 1
        weights = {name: curves.at(weight, moment.before) for name, weight in leg.weights.items()}
        means = trainer.gradients(batches, weights, step, leg.hide, moment.before)
        rate, norm = trainer.update(replace(moment, pace=batches[0].pace))
        meter.add(step, means, rate, norm)
        tokens += sum(batch.ids.numel() for batch in batches)
        done, stopped = step == planner.plan(step).steps, stop()
        log, save = pace.of(planner.plan(step))
        check = done or (step % save == 0 and planner.affords())
        pays = saving < pace.cheap or clock() - saved > 20 * saving
        keeps = done or stopped or (check and (pays or keep == "best")) or clock() - saved > pace.seconds
        first, begins = begins, False
        # at the last step of a stage, the place in the data is recorded
        border = not done and leg_at(ends, planner.plan(step).moment(step + 1)) != number
        if not (check or keeps or first or border or step % log == 0 or planner.due()):
            continue
        record = meter.record() | {"step": step, "stage": number, "tokens": tokens, "progress": moment.after}
        taken = source.state().get("turns")  # the steps of each track so far, if tracks take turns
        record |= {"turns": taken} if taken else {}
        record["seconds"] = clock() - began
        if not done:
            planner.look(step, number)
        looked, plan = clock(), planner.plan(step)
        record |= {"steps": plan.steps} | ({} if planner.left() is None else {"left": planner.left()})
        if check and validate is not None:
            record |= {f"validation_{name}": value for name, value in _quietly(trainer, validate).items()}
            if trainer.average is not None and trainer.average.waits:
                trainer.average.judge(record["validation_loss"])
        better = keep == "last" or validate is None or check and (best is None or record["validation_score"] > best)
        best = record.get("validation_score", best) if better else best
        begins = not done and leg_at(ends, plan.moment(step + 1)) != number
        position = source.after_stage() if begins else position
        ending = {"done": True} if done else {"stopped": True} if stopped else {}
        if keeps and folder is not None:
            saving = clock()
            meter.check_weights(step, record["rate"])
            at = {"step": step, "tokens": tokens, "seconds": record["seconds"], "spent": planner.spent(), "best": best,
                  "source": position if begins else source.state(), "begins": begins,
                  "record": record | ending}  # fmt: skip
            if trainer.average is not None:
                at["average"] = trainer.average.state()
            checkpoint.save_state(folder, trainer.system, trainer.optimiser, at, publish=better, memory=trainer.memory,
                                  average=trainer.averaged)  # fmt: skip
            saved, saving = clock(), clock() - saving
        if check or keeps:
            planner.aside(clock() - looked)
        yield record | ending
        if stopped:
            return


def _quietly(trainer: Trainer, validate: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Validate the weights that are published: the averaged ones, if there is an average."""
    trainer.system.eval()
    try:
        with torch.no_grad(), contextlib.nullcontext() if trainer.average is None else trainer.average.in_place():
            return validate()
    finally:
        trainer.system.train()


class _Meter:
    """Collects numbers on the device and reads them rarely, so that training never waits. Detects a loss that is not finite."""

    def __init__(self, trainer: Trainer, folder: Path | None) -> None:
        self.trainer, self.folder = trainer, folder
        self.held: list[tuple[int, float, dict[str, Tensor], Tensor]] = []

    def add(self, step: int, means: dict[str, Tensor], rate: float, norm: Tensor) -> None:
        self.held.append((step, rate, means, norm.detach()))

    def record(self) -> dict[str, Any]:
        """The mean of each loss over the steps that computed it, the last rate and the last norm of the gradient."""
        values = [torch.stack([*means.values(), norm.to(means[MINIMISED])]) for _, _, means, norm in self.held]
        numbers = iter(torch.cat(values).tolist())  # one transfer from the device
        found: dict[str, list[float]] = {}
        for step, rate, means, _ in self.held:
            row = {name: next(numbers) for name in (*means, GRADIENT)}
            if not all(map(math.isfinite, row.values())):
                raise self._diverged(step, rate, row)
            for name, number in row.items():
                found.setdefault(name, []).append(number)
        self.held = []
        gradient, minimised = found.pop(GRADIENT)[-1], found.pop(MINIMISED)
        losses = {f"loss_{name}": sum(mine) / len(mine) for name, mine in found.items()}
        return {"loss": sum(minimised) / len(minimised), "rate": rate, "gradient": gradient} | losses

    def check_weights(self, step: int, rate: float) -> None:
        """Refuse to save weights that are not finite: the previous checkpoint must stay."""
        trained = [p for p in self.trainer.system.parameters() if p.requires_grad]
        finite = torch.stack([p.isfinite().all() for p in trained]).all()
        if not bool(finite):
            raise self._diverged(step, rate, {"weights": math.nan})

    def _diverged(self, step: int, rate: float, numbers: dict[str, float]) -> Diverged:
        last = checkpoint.newest(self.folder) if self.folder is not None else None
        good = (
            f"the last good checkpoint is step {last:,} in {self.folder}"
            if last is not None
            else "no checkpoint was saved yet"
        )
        wrong = ", ".join(f"{name} {value}" for name, value in numbers.items() if not math.isfinite(value))
        return Diverged(
            (
                "training diverged at step {step:,} with learning rate {rate:.3g} ({wrong}); {good}: lower "
                "optimise.rate, or raise optimise.warmup"
            ),
            step=step,
            rate=rate,
            wrong=wrong,
            good=good,
        )


def memory_key(batch: Batch, index: int) -> int | str:
    """The name of the memory of a micro-batch of a step. Each track that takes turns has its own memory."""
    others = [name for name, _ in batch.tracks if name != MAIN]
    return index if not others else " ".join((*others, str(index)))


def reseed(seed: int, step: int) -> int:
    """The seed for dropout at a step."""
    return int(chance.generator(seed, step, chance.purpose("dropout")).integers(2**62))


def _portions(rows: int, micro: int) -> list[int]:
    return [min(micro, rows - begin) for begin in range(0, rows, micro)]
