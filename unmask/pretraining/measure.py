"""Decisions before the first step: the machine, the rows in one pass, the time of a step, and the stages of the loop."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from unmask.data.loader import Loader
from unmask.data.turns import TurnLoader
from unmask.errors import require
from unmask.pretraining.mixture import MICRO_TOKENS, Mixture
from unmask.recipe import Recipe, Stage
from unmask.system import step_flops, weights
from unmask.train import Budget, LoopStage, Machine, Trainer, training_machine

Source = Loader | TurnLoader

# Compiling takes half a minute on sixteen cores, and several minutes where runs share them, so a shorter training does not
# compile. A budget that is not in time is judged by its operations: about eight minutes of an H200.
COMPILING_PAYS = {"seconds": 300.0, "operations": 1e17}
# The share of the memory that plain passes may take. A recorded pass needs its memory a second time for a moment, and the optimiser and
# the validation need theirs: with passes that just fitted, nine of 23 runs that shared a GPU ran out of memory later.
FILLED = 0.6


def machine_for(device: str | None, compiled: bool | None, budget: Budget, recipe: Recipe, mixture: Mixture) -> Machine:
    """The machine to train on: the GPU if there is one, otherwise the CPU.

    `compiled`: None means to compile on a GPU, unless the training takes only a few minutes."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(
        not name.startswith("cuda") or torch.cuda.is_available(),
        "this machine has no GPU for --device {name}: use --device cpu",
        name=name,
    )
    gpu = name.startswith("cuda")
    if gpu:
        torch.set_float32_matmul_precision("high")
    drawn = any("random lengths" in track.arrange.gives for track in recipe.all_tracks().values())
    require(
        not (drawn and compiled),
        "rows of random length would be compiled once for each length: leave --compile out, or set "
        "arrange=ContinuingRows(deviation=0.0, half=0.0)",
    )
    if compiled is None:
        compiled = gpu and not drawn and _is_long(budget, recipe, mixture)
    return training_machine(name, compiled=compiled, recorded=not drawn)


def _is_long(budget: Budget, recipe: Recipe, mixture: Mixture) -> bool:
    steps = steps_paid(recipe, mixture, budget)
    if steps is None:
        return budget.amount >= COMPILING_PAYS["seconds"]
    return steps * step_costs(recipe, mixture)[1] >= COMPILING_PAYS["operations"]


def micro_rows(recipe: Recipe, mixture: Mixture, trainer: Trainer) -> list[int]:
    """Rows in one pass, for each stage: as many as fit the memory, up to the number that is fastest."""
    found = []
    for stage in recipe.schedule:
        most = min(stage.rows, max(1, MICRO_TOKENS[trainer.machine.device.split(":")[0]] // stage.length))
        for one in _single(stage) if trainer.machine.device != "cpu" else ():
            most = _fit(trainer, _passes(recipe, mixture, trainer, one), most)
        found.append(most)
    return found


def _passes(recipe: Recipe, mixture: Mixture, trainer: Trainer, stage: Stage) -> Callable[[int], Source]:
    def batches(rows: int) -> Source:
        trainer.memory.clear()  # it belongs to other rows
        return mixture.loader(recipe, stage.length, trainer.seed, None, rows, stage=stage)

    return batches


def _single(stage: Stage) -> list[Stage]:
    """The stage with each of its tracks that take turns alone, the most frequent first; without turns, the stage itself."""
    names = sorted((name for name, turns in stage.turns.items() if turns), key=lambda name: -stage.turns[name])
    return [replace(stage, turns={name: 1.0}) for name in names] or [stage]


def step_costs(recipe: Recipe, mixture: Mixture) -> tuple[float, float]:
    """Operations of a step of the first stage, and of a step on average."""
    flops = step_flops(recipe, mixture.tokenizer.vocabulary.size)
    return flops[0], sum(stage.share * each for stage, each in zip(recipe.schedule, flops, strict=True))


def steps_paid(recipe: Recipe, mixture: Mixture, limit: Budget) -> int | None:
    """The number of steps of a budget; None if the budget is in time."""
    return limit.steps(step_tokens=recipe.step_tokens, step_flops=step_costs(recipe, mixture)[1])


def _fit(trainer: Trainer, batches: Callable[[int], Source], rows: int) -> int:
    """The largest number of rows that fits the memory with room for the rest, found by halving. Two passes are run, because the
    second also holds the memory of the first. One row needs no room."""
    with trainer.plainly():
        while True:
            try:
                loader = batches(rows)
                torch.cuda.reset_peak_memory_stats()
                for _ in range(2):
                    trainer.gradients([loader.batch(rows)], {}, 0)
                if rows == 1 or torch.cuda.max_memory_allocated() <= FILLED * own_memory():
                    return rows
            except torch.OutOfMemoryError:
                require(
                    rows > 1,
                    "one row does not fit the memory of the GPU: lower schedule.*.length, or choose a smaller --size",
                )
            rows //= 2
            torch.cuda.empty_cache()


def own_memory() -> float:
    """Bytes of the GPU's memory that this process may take. Runs that share the GPU have equal parts."""
    total: int = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    return total * float(torch.cuda.get_per_process_memory_fraction())


def step_seconds(recipe: Recipe, mixture: Mixture, trainer: Trainer, micro: int, limit: float) -> float:
    """Seconds of one step of the first stage, measured in about `limit` seconds. On a CPU it is scaled up from a few rows."""
    stage, begin = recipe.schedule[0], time.monotonic()
    # a recorded or compiled track is slow in its first passes, so only one track is measured
    batches, rows = (
        _passes(recipe, mixture, trainer, _single(stage)[0]),
        1 if trainer.machine.device == "cpu" else micro,
    )
    while True:
        loader = batches(rows)
        # the first passes are a warmup
        took = [_pass_seconds(trainer, loader, rows) for _ in range(2 if rows < micro else 3)][-1]
        next_rows = min(micro, 4 * rows)
        if rows == micro or time.monotonic() - begin + 3 * took * next_rows / rows > limit:
            break
        rows = next_rows
    trainer.memory.clear()
    return took * stage.rows / rows + _update_seconds(trainer)


def _pass_seconds(trainer: Trainer, loader: Source, rows: int) -> float:
    batch, begin = loader.batch(rows), time.monotonic()
    trainer.gradients([batch], {}, 0)
    if trainer.machine.device != "cpu":
        torch.cuda.synchronize()
    return time.monotonic() - begin


def _update_seconds(trainer: Trainer) -> float:
    """Seconds of one update of the weights. The weights are put back, because measuring must not train."""
    parameters, optimiser = list(trainer.system.parameters()), trainer.optimiser
    before = [parameter.detach().clone() for parameter in parameters]
    state = {
        p: {name: value.clone() for name, value in of.items()} for p, of in optimiser.state.items()
    }  # Adagrad has one
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    took = [_timed_update(trainer, parameters) for _ in range(2)][-1]  # the first is a warmup
    optimiser.state.clear()
    optimiser.state.update(state)
    optimiser.zero_grad(set_to_none=True)
    with torch.no_grad():
        for parameter, value in zip(parameters, before, strict=True):
            parameter.copy_(value)
    return took


def _timed_update(trainer: Trainer, parameters: list[torch.nn.Parameter]) -> float:
    begin = time.monotonic()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    trainer.optimiser.step()
    if trainer.machine.device != "cpu":
        torch.cuda.synchronize()
    return time.monotonic() - begin


def legs_of(recipe: Recipe, mixture: Mixture, micro: list[int], seed: int, opened: list[Source]) -> list[LoopStage]:
    """The stages as the loop runs them; every loader that is opened is added to `opened`."""
    legs = []
    for stage, rows, until in zip(recipe.schedule, micro, ends(recipe), strict=True):

        def open_loader(state: dict[str, Any] | None, stage: Stage = stage) -> Source:
            opened.append(mixture.loader(recipe, stage.length, seed, state, stage.rows, stage=stage))
            return opened[-1]

        legs.append(LoopStage(until, stage.rows, rows, open_loader, weights(recipe, stage), stage.hide))
    return legs


def ends(recipe: Recipe) -> list[float]:
    """The progress at which each stage ends."""
    total = list(itertools.accumulate(stage.share for stage in recipe.schedule))
    return [*total[:-1], 1.0]
