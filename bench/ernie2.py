"""ERNIE 2.0's seven tasks beside BERT: the speed of the loader on one core, and of training steps on a GPU.

    python bench/ernie2.py DATA [--blocks 6] [--size base] [--steps 40] [--plain]

DATA is a folder made by `unmask prepare --capitals`. Tokens are counted without padding in the loader, and with padding in
training, as elsewhere. Without a GPU, only the loader is measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from dataclasses import replace
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--blocks", type=int, default=6)
    options.add_argument("--size", default="base")
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--plain", action="store_true", help="record the training steps, but do not compile them")
    chosen = options.parse_args()
    mixture = Mixture.open([chosen.data])
    words = ["hide.units=Words"]  # the data need not have a lexicon
    ernie = recipes.get("ernie-2", size=chosen.size, variant="joint", settings=words)
    bert = recipes.get("bert", size=chosen.size)
    results: dict[str, Any] = {"loader, tokens a second": rows(mixture, ernie, bert, chosen.blocks)}
    if torch.cuda.is_available():
        results["training, tokens a second"] = training(mixture, ernie, bert, chosen.steps, compiled=not chosen.plain)
    print(json.dumps(results, indent=1))


def rows(mixture: Mixture, ernie: Recipe, bert: Recipe, blocks: int) -> dict[str, Any]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # one core for everything
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {"bert": loader_speed(mixture, bert.alone("main"), blocks)}
    found |= {name: loader_speed(mixture, ernie.alone(name), blocks) for name in ernie.all_tracks()}
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


def training(mixture: Mixture, ernie: Recipe, bert: Recipe, steps: int, *, compiled: bool) -> dict[str, float]:
    """Tokens a second of each, and their ratio. BERT is measured twice, so that the machine is warm."""
    found = {recipe.name: step_speed(mixture, recipe, steps, compiled=compiled) for recipe in (bert, ernie, bert)}
    return found | {"share of bert": found[ernie.name] / found[bert.name]}


def step_speed(mixture: Mixture, recipe: Recipe, steps: int, *, compiled: bool) -> float:
    """Tokens a second of whole steps of 128 rows, recorded, after every track was recorded."""
    torch.set_float32_matmul_precision("high")
    count = BATCH_TOKENS // LENGTH
    stage = replace(recipe.schedule[-1], share=1.0, rows=count, length=LENGTH)
    recipe = with_entities(recipe.replace(schedule=(stage,)), mixture)
    system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, 0)
    put_entities(system, mixture)
    machine = Machine(device="cuda", half=True, compiled=compiled, recorded=True)
    trainer = Trainer(system, recipe.optimise, machine, 0)
    source = legs_of(recipe, mixture, [count], 0, [])[0].open(None)
    batches = [source.batch(count) for _ in range(2 * len(recipe.all_tracks()))]
    for step, batch in enumerate(batches):  # every track is compiled and recorded
        _step(trainer, batch, step)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for step in range(steps):
        _step(trainer, source.batch(count), step)
    torch.cuda.synchronize()
    taken = time.perf_counter() - begin
    del trainer, system
    gc.collect()  # a trainer refers to itself, and its recordings would keep the memory of the GPU
    torch.cuda.empty_cache()
    return steps * count * LENGTH / taken


def _step(trainer: Trainer, batch: Any, step: int) -> None:
    trainer.gradients([batch], {}, step)
    trainer.optimiser.step()


if __name__ == "__main__":
    main()
