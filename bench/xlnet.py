"""XLNet's pretraining speed beside transformers' XLNet, on one GPU, in one run, on the same batch.

    python bench/xlnet.py [--size base] [--rows 32] [--memory 384] [--compiled]

Both train on full rows of 512 tokens with the same orders and targets (85 a row) and a memory, in bfloat16, with fused
AdamW; the peer is given perm_mask, target_mapping and its memory as its documentation says. unmask's steps are recorded,
as in training; `--compiled` compiles both, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask import recipes
from unmask.batch import Batch, Vocabulary
from unmask.recipe import Recipe
from unmask.train import Machine, Moment, Trainer

LENGTH = 512
VOCABULARY = Vocabulary(size=32_000, pad=0, special=(0, 1, 2, 3, 4), mask=4)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, default=32)
    options.add_argument("--memory", type=int, default=384)
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--compiled", action="store_true", help="then both compiled, too")
    options.add_argument("--device", default="cuda")
    chosen = options.parse_args()
    recipe = recipes.get("xlnet", size=chosen.size, settings=[f"system.backbone.memory={chosen.memory}"])
    batches = [rows(chosen.rows, seed).to(chosen.device) for seed in range(4)]
    for compiled in (False, True) if chosen.compiled else (False,):
        ours = speed(unmask(recipe, chosen.device, compiled), batches, chosen.steps)
        theirs = speed(peer(recipe, chosen.device, compiled), batches, chosen.steps)
        name = f"transformers {'compiled' if compiled else 'eager'}"
        print(json.dumps({"rows": chosen.rows, "memory": chosen.memory, "unmask": ours, name: theirs,
                          "ratio": ours / theirs}), flush=True)  # fmt: skip


def unmask(recipe: Recipe, device: str, compiled: bool) -> Callable[[Batch], None]:
    system = recipe.system.build(recipe, VOCABULARY, 0)  # type: ignore[attr-defined]
    gpu = device != "cpu"
    trainer = Trainer(system, recipe.optimise, Machine(device, half=gpu, compiled=compiled, recorded=gpu), 0)  # type: ignore[arg-type]
    system.train()

    def step(batch: Batch) -> None:
        trainer.gradients([batch], {}, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))

    return step


def peer(recipe: Recipe, device: str, compiled: bool) -> Callable[[Batch], None]:
    from transformers import XLNetConfig, XLNetLMHeadModel

    spec: Any = recipe.system.backbone
    config = XLNetConfig(
        vocab_size=VOCABULARY.size, d_model=spec.width, n_layer=spec.layers, n_head=spec.heads, d_inner=spec.feedforward,
        mem_len=spec.memory, reuse_len=LENGTH // 2, use_mems_train=spec.memory > 0,
    )  # fmt: skip
    model = XLNetLMHeadModel(config).to(device).train()
    run = torch.compile(model, dynamic=False) if compiled else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    system = recipe.system.build(recipe, VOCABULARY, 0).to(device)  # type: ignore[attr-defined]
    memory = None

    def step(batch: Batch) -> None:
        nonlocal memory
        made, _ = system.hide(batch)
        count = made.shape[0]
        where = made.targets["tokens"].where.view(count, -1) % LENGTH
        mapping = torch.nn.functional.one_hot(where, LENGTH).float()
        predicted = (
            torch.zeros(made.shape, device=device).scatter(1, where, made.targets["tokens"].weight.view(count, -1)) > 0
        )
        ahead = made.rank[:, None, :] - made.rank[:, :, None]
        blocked = torch.where(predicted[:, :, None], ahead >= 0, ahead > 0).float()
        labels = torch.where(made.targets["tokens"].weight > 0, made.targets["tokens"].ids, -100).view(count, -1)
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
            out = run(input_ids=made.ids, perm_mask=blocked, target_mapping=mapping, token_type_ids=made.segment,
                      mems=memory, labels=labels)  # fmt: skip
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        memory = [layer.detach() for layer in out.mems] if out.mems else None

    return step


def rows(count: int, seed: int) -> Batch:
    """Full rows of two segments and special tokens, their first half to be remembered."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY.size, (count, LENGTH), generator=random)
    place = torch.arange(LENGTH).expand(count, LENGTH).contiguous()
    special = (place == LENGTH * 3 // 4) | (place >= LENGTH - 2)
    ids[special] = 3
    zeros = torch.zeros_like(ids)
    begins = (torch.rand(count, LENGTH, generator=random) < 0.7) & ~special
    segment = (place > LENGTH * 3 // 4).long() + (place == LENGTH - 1)
    return Batch(
        ids=ids, columns={"word": torch.where(special, -1, begins.cumsum(1)), "sentence": zeros}, example=zeros, segment=segment,
        position=place, row=torch.arange(count), visit=torch.zeros(count, dtype=torch.long),
        summary=torch.arange(1, count + 1) * LENGTH - 1, label=torch.zeros(count, dtype=torch.long),
        counted=torch.ones(count), reuse=LENGTH // 2,
    )  # fmt: skip


def speed(step: Callable[[Batch], None], batches: list[Batch], steps: int) -> float:
    """Tokens per second, the best of three rounds, after warming up."""
    for batch in batches:
        step(batch)
    best = 0.0
    for _ in range(3):
        wait(batches[0])
        begin = time.perf_counter()
        for index in range(steps):
            step(batches[index % len(batches)])
        wait(batches[0])
        best = max(best, steps * batches[0].ids.numel() / (time.perf_counter() - begin))
    return best


def wait(batch: Batch) -> None:
    if batch.ids.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
