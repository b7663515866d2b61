"""ERNIE 2.0's seven tasks beside BERT: the speed of the loader on one core, and of training steps on a GPU.

    python bench/ernie2.py DATA [--blocks 6] [--size base] [--steps 40] [--plain]

DATA is a folder made by `unmask prepare --capitals`. Tokens are counted without padding in the loader, and with padding in
training, as elsewhere. Every training is measured in a process of its own, so that no network stays in the memory of the GPU.
Each number is printed when it is known. On a CPU everything is tiny, to try the script.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch

from unmask import recipes
from unmask.data import Collection
from unmask.data.loader import to_batch
from unmask.data.reader import Place, Slot
from unmask.pretraining import Mixture
from unmask.pretraining.entity_vectors import put_entities, with_entities
from unmask.pretraining.measure import legs_of
from unmask.recipe import Recipe
from unmask.train import Machine, Trainer

LENGTH = 512
BATCH_TOKENS = 65_536  # tokens of a batch
WORDS = ("hide.units=Words",)  # the data need not have a lexicon


@dataclass(frozen=True)
class Measured:
    """What is trained, and how long. It is sent to another process."""

    data: str
    name: str
    size: str
    variant: str
    settings: tuple[str, ...]
    steps: int
    rows: int
    length: int
    compiled: bool

    @property
    def recipe(self) -> Recipe:
        return recipes.get(self.name, size=self.size, variant=self.variant, settings=self.settings)


def main() -> None:
    options = arguments(__doc__)
    options.add_argument("--blocks", type=int, default=6 if torch.cuda.is_available() else 1)
    chosen = options.parse_args()
    mixture, ernie = Mixture.open([chosen.data]), measured(chosen, "ernie-2", "joint", WORDS)
    speeds = rows(mixture, ernie.recipe, measured(chosen, "bert").recipe, chosen.blocks)
    results = {
        "loader, tokens a second": speeds,
        "training, tokens a second": training(ernie, measured(chosen, "bert")),
    }
    print(json.dumps(results, indent=1))


def arguments(about: str | None) -> argparse.ArgumentParser:
    """The options that this script and ernie_thu.py share."""
    gpu = torch.cuda.is_available()
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--size", default="base" if gpu else "tiny")
    options.add_argument("--steps", type=int, default=40 if gpu else 4)
    options.add_argument("--plain", action="store_true", help="record the training steps, but do not compile them")
    return options


def measured(chosen: Any, name: str, variant: str = "paper", settings: tuple[str, ...] = ()) -> Measured:
    """A recipe with the options of the command."""
    gpu = torch.cuda.is_available()
    length = LENGTH if gpu else 64
    count = BATCH_TOKENS // LENGTH if gpu else 4
    return Measured(
        chosen.data, name, chosen.size, variant, settings, chosen.steps, count, length, gpu and not chosen.plain
    )


def tell(about: str) -> None:
    """Progress, with the time: the numbers themselves are printed at the end."""
    print(f"{time.strftime('%H:%M:%S')} {about}", file=sys.stderr, flush=True)


def rows(mixture: Mixture, ernie: Recipe, bert: Recipe, blocks: int) -> dict[str, Any]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # one core for everything
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {}
    alone = {"bert": bert.alone("main")} | {name: ernie.alone(name) for name in ernie.all_tracks()}
    for name, recipe in alone.items():
        found[name] = loader_speed(mixture, recipe, blocks)
        tell(f"the loader of {name}: {found[name]:,.0f} tokens a second")
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(threads)
    tasks = [speed for name, speed in found.items() if name != "bert"]
    together = len(tasks) / sum(1 / speed for speed in tasks)  # the tasks read the same number of tokens
    return found | {"seven tasks together": together, "share of bert": together / found["bert"]}


def loader_speed(mixture: Mixture, recipe: Recipe, blocks: int) -> float:
    """Tokens a second of whole blocks, made and collected into batches one after another."""
    collection, count = Collection(mixture.shards[0].split("train")), BATCH_TOKENS // LENGTH
    reader = recipe.arrange.open(collection, mixture.tokenizer, recipe.layout, LENGTH, 0)
    place, slot, real = Place(), Slot(), 0
    begin = time.perf_counter()
    for _ in range(blocks):
        block = reader.block(place, slot)
        for low in range(0, len(block), count):
            taken = block.part(low, min(low + count, len(block)))
            real += int(to_batch(taken.rows, taken.address, taken.visit).real.sum())
        place = reader.after(place, slot)
    return real / (time.perf_counter() - begin)


def training(ernie: Measured, bert: Measured) -> dict[str, float]:
    """Tokens a second of each, and their ratio. BERT is measured twice, so that the machine is warm."""
    found: dict[str, float] = {}
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned, max_tasks_per_child=1) as processes:
        for one in (bert, ernie, bert):
            tell(f"training {one.name}, {one.steps} steps" + (", after compiling" if one.compiled else ""))
            found[one.name] = processes.submit(step_speed, one).result()
            tell(f"training {one.name}: {found[one.name]:,.0f} tokens a second")
    return found | {"share of bert": found[ernie.name] / found[bert.name]}


def step_speed(one: Measured) -> float:
    """Tokens a second of whole steps, on a GPU recorded, after every track was recorded."""
    torch.set_float32_matmul_precision("high")
    mixture, recipe, gpu = Mixture.open([one.data]), one.recipe, torch.cuda.is_available()
    stage = replace(recipe.schedule[-1], share=1.0, rows=one.rows, length=one.length)
    recipe = with_entities(recipe.replace(schedule=(stage,)), mixture)
    system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, 0)
    put_entities(system, mixture)
    machine = Machine(device="cuda" if gpu else "cpu", half=gpu, compiled=one.compiled, recorded=gpu)
    trainer = Trainer(system, recipe.optimise, machine, 0)
    source = legs_of(recipe, mixture, [one.rows], 0, [])[0].open(None)
    for step in range(2 * len(recipe.all_tracks())):  # every track is compiled and recorded
        _step(trainer, source.batch(one.rows), step)
    _wait()
    begin = time.perf_counter()
    for step in range(one.steps):
        _step(trainer, source.batch(one.rows), step)
    _wait()
    return one.steps * one.rows * one.length / (time.perf_counter() - begin)


def _step(trainer: Trainer, batch: Any, step: int) -> None:
    trainer.gradients([batch], {}, step)
    trainer.optimiser.step()


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
