"""Where the time of a small training step goes, on one GPU: small steps are limited by launches and waiting, not by arithmetic.

    python bench/step.py DATA [--recipe roberta] [--size small] [--rows 64] [--length 128] [--steps 300]

DATA is a folder made by `unmask prepare`. Each way to run a step (plain, recorded, compiled and recorded) is timed as a
whole, without validations and checkpoints; then its parts are timed alone, each waiting for the GPU, so their sum is larger.
The floor is the time of the step's operations at the speed of a large matrix product.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from train import matmul_peak  # beside this file

from unmask import recipes
from unmask.pretraining import Mixture
from unmask.system import step_flops
from unmask.train import Machine, Plan, Trainer

WAYS = {
    "plain": Machine("cuda", half=True),
    "recorded": Machine("cuda", half=True, recorded=True),
    "compiled and recorded": Machine("cuda", half=True, compiled=True, recorded=True),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--recipe", default="roberta")
    options.add_argument("--size", default="small")
    options.add_argument("--rows", type=int, default=64)
    options.add_argument("--length", type=int, default=128)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument(
        "--way", action="append", choices=tuple(WAYS), help="give it several times; all if none is given"
    )
    chosen = options.parse_args()
    settings = [f"schedule.*.rows={chosen.rows}", f"schedule.*.length={chosen.length}"]
    recipe = recipes.get(chosen.recipe, size=chosen.size, settings=settings)
    mixture, plan = Mixture.open([chosen.data]), Plan(10 * chosen.steps)
    torch.set_float32_matmul_precision("high")
    operations = step_flops(recipe, mixture.tokenizer.vocabulary.size)[0]
    found: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "floor_ms": 1e3 * operations / matmul_peak()}
    for name in chosen.way or WAYS:
        machine, began = WAYS[name], time.perf_counter()
        system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, 0)
        trainer = Trainer(system, recipe.optimise, machine, 0)
        loader = mixture.loader(recipe, chosen.length, 0, None, chosen.rows)
        system.train()

        def step(number: int, trainer: Trainer = trainer, loader: Any = loader) -> None:
            trainer.gradients([loader.batch(chosen.rows)], {}, number)
            trainer.update(plan.moment(number))

        step(1)
        torch.cuda.synchronize()
        first = time.perf_counter() - began
        whole = timed(step, chosen.steps)
        batch = loader.batch(chosen.rows)
        moved = batch.to("cuda").replace(progress=torch.zeros((), device="cuda"))
        hidden, counts = trainer.hide(moved, None)
        scales = {key: 1 / count.clamp(min=1) for key, count in counts.items()}
        parts: dict[str, Callable[[int], Any]] = {
            "loader": lambda _, loader=loader: loader.batch(chosen.rows),
            "to the GPU": lambda _, batch=batch: batch.to("cuda", non_blocking=True),
            "hide": lambda _, trainer=trainer, moved=moved: trainer.hide(moved, None),
            "forward and backward": lambda _, t=trainer, h=hidden, s=scales: t.run(h, t.memory.get(0), s),
            "update": lambda number, trainer=trainer: trainer.update(plan.moment(number)),
        }
        each = {part: timed(work, 100) for part, work in parts.items()}
        found[name] = {
            "steps_per_second": 1e3 / whole,
            "step_ms": whole,
            "first_step_seconds": first,
            **{f"{part}_ms": ms for part, ms in each.items()},
        }
        print(name, json.dumps(found[name], indent=1), flush=True)
    print(json.dumps(found, indent=1))


def timed(work: Callable[[int], Any], times: int) -> float:
    """Milliseconds of one call."""
    for number in range(1, 11):
        work(number)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for number in range(11, times + 11):
        work(number)
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - began) / times


if __name__ == "__main__":
    main()
