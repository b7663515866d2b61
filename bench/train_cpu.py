"""Training speed on a CPU: unmask's RoBERTa and GPT-2 next to transformers' networks of the same shape, in one run.

    python bench/train_cpu.py [--size tiny] [--vocabulary 8000] [--threads 2]

Rows are full, so nobody pads. The peer is a plain training loop (SDPA, fused AdamW), once in float32 and once under bfloat16
autocast. Each network trains in its own process, because a process keeps its way of allocating memory. Everything of a step
counts: hiding, forward, backward, clipping, update. Nothing has dropout.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask import recipes
from unmask.batch import Batch, Vocabulary
from unmask.recipe import Recipe
from unmask.train import Machine, Moment, Trainer, training_machine

LENGTH, ROWS = 128, 16
RECIPES = ("roberta", "gpt2")
WAYS = ("transformers float32", "transformers bfloat16", "unmask float32", "unmask")
STEPS = 20


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="tiny")
    options.add_argument("--vocabulary", type=int, default=8000)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--one", nargs=2, metavar=("RECIPE", "WAY"), help=argparse.SUPPRESS)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.one:
        print(json.dumps(speed(*given.one, size=given.size, vocabulary=given.vocabulary)))
        return
    for name in RECIPES:
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(given.rounds):
            for way in WAYS:
                done = subprocess.run(
                    [sys.executable, *sys.argv, "--one", name, way], capture_output=True, text=True, check=True
                )
                found[way].append(json.loads(done.stdout.splitlines()[-1]))
        speeds = {way: round(statistics.median(values)) for way, values in found.items()}
        ratios = {f"unmask to {way}": round(speeds["unmask"] / speeds[way], 2) for way in WAYS[:-1]}
        print(json.dumps({"recipe": name, "size": given.size, "threads": given.threads, "tokens a second": speeds} | ratios), flush=True)  # fmt: skip


def speed(name: str, way: str, *, size: str, vocabulary: int) -> float:
    """Tokens a second: the median step, after a few to warm up."""
    recipe = recipes.get(name, size=size, settings=[f"schedule.0.length={LENGTH}", "system.backbone.dropout=0.0"])
    known = Vocabulary(size=vocabulary, pad=0, special=(0, 1, 2, 3, 4), mask=4)
    step = unmask(recipe, known, way) if way.startswith("unmask") else peer(recipe, known, way)
    batches, took = [rows(vocabulary, seed) for seed in range(4)], []
    for number in range(STEPS):
        begin = time.perf_counter()
        step(batches[number % len(batches)])
        took.append(time.perf_counter() - begin)
    return ROWS * LENGTH / statistics.median(took[STEPS // 4 :])


def unmask(recipe: Recipe, vocabulary: Vocabulary, way: str) -> Callable[[Batch], None]:
    machine = Machine() if way.endswith("float32") else training_machine("cpu")
    trainer = Trainer(recipe.system.build(recipe, vocabulary, 0), recipe.optimise, machine, 0)
    trainer.system.train()

    def step(batch: Batch) -> None:
        trainer.gradients([batch], {}, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))

    return step


def peer(recipe: Recipe, vocabulary: Vocabulary, way: str) -> Callable[[Batch], None]:
    model = network(recipe, vocabulary).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    half = way.endswith("bfloat16")

    def step(batch: Batch) -> None:
        ids, labels = batch.ids, batch.ids
        if "left" not in recipe.writes:
            chosen = torch.rand(ids.shape) < 0.15
            ids, labels = torch.where(chosen, vocabulary.mask or 0, ids), torch.where(chosen, ids, -100)
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def network(recipe: Recipe, vocabulary: Vocabulary) -> Any:
    """The network of transformers of this shape, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel, RobertaConfig, RobertaForMaskedLM

    spec: Any = recipe.system.backbone  # type: ignore[attr-defined]
    shape = {"vocab_size": vocabulary.size, "attn_implementation": "sdpa"}
    if "left" in recipe.writes:
        return GPT2LMHeadModel(GPT2Config(
            n_embd=spec.width, n_layer=spec.layers, n_head=spec.heads, n_inner=spec.feedforward, n_positions=LENGTH,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **shape,
        ))  # fmt: skip
    return RobertaForMaskedLM(RobertaConfig(
        hidden_size=spec.width, num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
        intermediate_size=spec.feedforward, max_position_embeddings=LENGTH + 2, pad_token_id=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **shape,
    ))  # fmt: skip


def rows(vocabulary: int, seed: int) -> Batch:
    """Full rows of random tokens."""
    ids = torch.randint(5, vocabulary, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))
    place, zeros = torch.arange(LENGTH).expand(ROWS, LENGTH).contiguous(), torch.zeros_like(ids)
    return Batch(
        ids=ids, columns={"word": place, "sentence": zeros}, example=zeros, segment=zeros, position=place, row=torch.arange(ROWS),
        visit=torch.zeros(ROWS, dtype=torch.long), summary=torch.arange(ROWS) * LENGTH,
        label=torch.zeros(ROWS, dtype=torch.long), counted=torch.ones(ROWS),
    )  # fmt: skip


if __name__ == "__main__":
    main()
