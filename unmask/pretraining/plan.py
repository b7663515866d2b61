"""What is decided once, before the first step: the machine, rows in one pass, how many steps, the stages as legs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from unmask.data.loader import Loader
from unmask.data.stream_loader import StreamLoader
from unmask.errors import require
from unmask.pretraining.mixture import MICRO_TOKENS, Mixture, rows_per_step
from unmask.recipe import Recipe
from unmask.system import schedule_flops, weights
from unmask.train import Budget, Leg, Machine, Trainer

COMPILING_PAYS = 600.0  # seconds of a budget: compiling takes one or two minutes


def machine_for(device: str | None, compiled: bool | None, budget: Budget) -> Machine:
    """The machine to train on: the GPU if there is one, in bfloat16; otherwise the CPU, in float32.

    Compiling is left to the budget if nothing is said: on a GPU, unless that is a few minutes."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(
        not name.startswith("cuda") or torch.cuda.is_available(), f"no GPU here for --device {name}: use --device cpu"
    )
    gpu = name.startswith("cuda")
    if gpu:
        torch.set_float32_matmul_precision("high")
    if compiled is None:
        compiled = gpu and not (budget.kind == "seconds" and budget.amount < COMPILING_PAYS)
    return Machine(device=name, half=gpu, compiled=compiled, recorded=gpu)


def planned(recipe: Recipe, mixture: Mixture, trainer: Trainer, budget: Budget, began: float) -> dict[str, Any]:
    """What is decided once and stored: rows in one pass, and the number of steps, measured if the budget is time."""
    vocabulary = mixture.tokenizer.vocabulary.size
    steps = budget.steps(batch_tokens=recipe.batch_tokens, flops_per_token=schedule_flops(recipe, vocabulary))
    micro, seconds = [], 0.0
    update = _update_seconds(trainer) if steps is None else 0.0
    for stage in recipe.schedule:

        def batches(rows: int, length: int = stage.length) -> Loader | StreamLoader:
            trainer.memory.clear()  # it is of other rows
            return mixture.loader(recipe, length, trainer.seed, None, rows)

        rows = rows_per_step(recipe, stage.length)
        most = max(1, MICRO_TOKENS[trainer.machine.device.split(":")[0]] // stage.length)
        micro.append(_fit(trainer, batches, min(rows, most)) if trainer.machine.device != "cpu" else min(rows, most))
        if steps is None:
            seconds += stage.share * (_seconds(trainer, batches(micro[-1]), micro[-1]) * rows / micro[-1] + update)
    trainer.memory.clear()
    if steps is None:
        left = budget.amount - (time.monotonic() - began)
        require(left > 0, f"the budget of {budget.amount:.0f} s was spent before the first step: give more time")
        steps = max(1, int(0.94 * left / seconds))  # the rest is for validation and checkpoints
    return {"steps": steps, "micro": micro}


def _fit(trainer: Trainer, batches: Callable[[int], Loader | StreamLoader], rows: int) -> int:
    """The most rows, halving from these, that one pass has memory for; the second pass remembers the first."""
    with trainer.plainly():
        while True:
            try:
                loader = batches(rows)
                for _ in range(2):
                    trainer.gradients([loader.batch(rows)], {}, 0)
                return rows
            except torch.OutOfMemoryError:
                require(rows > 1, "not even one row fits the memory: lower schedule.*.length, or take a smaller --size")
                rows //= 2
                torch.cuda.empty_cache()


def _seconds(trainer: Trainer, loader: Loader | StreamLoader, rows: int) -> float:
    """Time of one pass, after the first ones have compiled and warmed up."""
    for timed in (False, True):
        begin, passes = time.monotonic(), 4
        for _ in range(passes):
            trainer.gradients([loader.batch(rows)], {}, 0)
        if trainer.machine.device != "cpu":
            torch.cuda.synchronize()
        if timed:
            return (time.monotonic() - begin) / passes
    raise AssertionError


def _update_seconds(trainer: Trainer) -> float:
    """Time of one move of the weights, made on copies of them: measuring must not train."""
    copies = torch.nn.ParameterList(p.detach().clone() for p in trainer.system.parameters())
    for parameter in copies:
        parameter.grad = torch.ones_like(parameter)
    optimiser = trainer.optimise.build(copies)
    for timed in (False, True):
        begin = time.monotonic()
        torch.nn.utils.clip_grad_norm_(copies, 1.0)
        optimiser.step()
        if trainer.machine.device != "cpu":
            torch.cuda.synchronize()
        if timed:
            return time.monotonic() - begin
    raise AssertionError


def legs_of(
    recipe: Recipe, mixture: Mixture, plan: dict[str, Any], seed: int, opened: list[Loader | StreamLoader]
) -> list[Leg]:
    """The stages as the loop runs them; every loader that it opens is noted in `opened`."""
    legs, share = [], 0.0
    for stage, micro in zip(recipe.schedule, plan["micro"], strict=True):
        share += stage.share

        def open_loader(state: dict[str, Any] | None, length: int = stage.length) -> Loader | StreamLoader:
            opened.append(mixture.loader(recipe, length, seed, state))
            return opened[-1]

        rows = rows_per_step(recipe, stage.length)
        until = max(1, round(share * plan["steps"]))
        legs.append(Leg(until, rows, micro, open_loader, weights(recipe, stage), stage.hide))
    return legs
