"""What hiding costs: the share of a training step that goes into `system.hide`, for every recipe.

    python bench/hide.py [--device cuda] [--size base] [--tokens 65536]

`system.hide` draws views, hides, says who sees whom and counts; the step is all of it: hide, forward, backward, update.
On a GPU it runs in bfloat16 and compiled; on a CPU in float32. Rows are full, of random tokens in words of random length.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask import curves, recipes
from unmask.batch import Batch, Vocabulary
from unmask.train import Machine, Moment, Trainer

LENGTH = 512
VOCABULARY = Vocabulary(size=30_000, pad=0, special=(0, 1, 2, 3, 4), mask=4)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--size", default=None)
    options.add_argument("--tokens", type=int, default=None)
    options.add_argument("--recipes", nargs="*", default=recipes.names())
    chosen = options.parse_args()
    gpu = chosen.device != "cpu"
    size, tokens = chosen.size or ("base" if gpu else "mini"), chosen.tokens or (65_536 if gpu else 8_192)
    batch = rows_of_words(tokens // LENGTH, chosen.device)
    torch._dynamo.config.recompile_limit = 64  # one process compiles the hiding of every recipe
    machine = Machine(chosen.device, half=gpu, compiled=gpu, recorded=gpu)
    for name in chosen.recipes:
        print(json.dumps({"recipe": name} | measure(name, size, batch, machine)), flush=True)


def measure(name: str, size: str, batch: Batch, machine: Machine) -> dict[str, Any]:
    """Milliseconds of hiding and of the whole step, the share, and tokens per second."""
    lengths = [f"schedule.{i}.length={LENGTH}" for i in range(len(recipes.get(name, size=size).schedule))]
    recipe = recipes.get(name, size=size, settings=lengths)
    trainer = Trainer(recipe.system.build(recipe, VOCABULARY, 0), recipe.optimise, machine, 0)  # type: ignore[attr-defined, arg-type]
    trainer.system.train()
    weights = {name: curves.at(weight, 0.0) for name, weight in recipe.schedule[0].weights.items()}

    def step() -> None:
        trainer.gradients([batch], weights, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))

    rounds = 20 if machine.half else 4
    whole = seconds(step, rounds, machine)
    hiding = seconds(lambda: trainer.hide(batch, None), rounds, machine)
    return {
        "hide_ms": 1e3 * hiding,
        "step_ms": 1e3 * whole,
        "share": hiding / whole,
        "tokens_per_second": batch.ids.numel() / whole,
    }


def seconds(work: Callable[[], object], rounds: int, machine: Machine) -> float:
    """Of one call, the best of three rounds, after warming up."""
    for _ in range(3):
        work()
    best = float("inf")
    for _ in range(3):
        wait(machine)
        begin = time.perf_counter()
        for _ in range(rounds):
            work()
        wait(machine)
        best = min(best, (time.perf_counter() - begin) / rounds)
    return best


def wait(machine: Machine) -> None:
    if machine.device != "cpu":
        torch.cuda.synchronize()


def rows_of_words(rows: int, device: str) -> Batch:
    """Full rows of pairs, with words of one to three tokens, and a phrase and an entity here and there."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(5, VOCABULARY.size, (rows, LENGTH), generator=random)
    place = torch.arange(LENGTH).expand(rows, LENGTH).contiguous()
    special = (place == 0) | (place == LENGTH // 2) | (place == LENGTH - 1)
    ids[special] = 3
    begins = (torch.rand(rows, LENGTH, generator=random) < 0.7) | torch.roll(special, 1, 1)
    word = torch.where(special, -1, (begins & ~special).cumsum(1) - 1)
    unit = torch.where(special | (place // 5 % 4 > 0), -1, place // 20)
    batch = Batch(
        ids=ids, columns={"word": word, "sentence": torch.where(special, -1, place // 32), "phrase": unit, "entity": unit},
        example=torch.zeros_like(ids),
        segment=(place > LENGTH // 2).long(), position=place, row=torch.arange(rows),
        visit=torch.zeros(rows, dtype=torch.long), summary=torch.arange(rows) * LENGTH,
        label=torch.zeros(rows, dtype=torch.long), counted=torch.ones(rows),
    )  # fmt: skip
    return batch.to(device)


if __name__ == "__main__":
    main()
