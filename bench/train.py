"""Training speed: unmask's BERT beside transformers' BertForMaskedLM, on one GPU, in one run.

    python bench/train.py [--data FOLDER] [--size base] [--rows 64]

Full rows are the peer's best case. Ragged rows are document blocks of real text (--data, made by `unmask prepare`):
the peer pads them to the longest of a batch, unmask packs them. Tokens are counted without padding. Both train in
bfloat16 with SDPA or variable-length attention, no dropout on attention weights, 10% elsewhere, and fused AdamW.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from unmask import recipes
from unmask.batch import Batch, Vocabulary
from unmask.data import Blocks, Collection, Shards
from unmask.data.loader import Loader, TrackReaders
from unmask.recipe import Recipe, Stage
from unmask.system.cost import flops_per_token
from unmask.text import Tokenizer
from unmask.train import Machine, Moment, Trainer

LENGTH = 512
VOCABULARY = Vocabulary(size=30_000, pad=0, special=(0, 1, 2, 3, 4), mask=4)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default=None)
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, default=128)
    options.add_argument("--steps", type=int, default=12)
    chosen = options.parse_args()
    recipe = recipes.get("bert", size=chosen.size, settings=["arrange=Blocks", "schedule.0.length=512"])
    peak = matmul_peak()
    full = [full_rows(chosen.rows, seed) for seed in range(4)]
    results: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "matmul_tflops": peak / 1e12,
    }
    results["full"] = compare(recipe, full, full, chosen.steps, padded=False)
    if chosen.data:
        packed, alone = ragged_rows(chosen.data, chosen.rows)
        results["ragged"] = compare(recipe, packed, alone, chosen.steps, padded=True)
    cost = flops_per_token(recipe, VOCABULARY.size, Stage(length=LENGTH))
    for name in ("full", "ragged"):
        if name in results:
            results[name]["share_of_matmul_peak"] = results[name]["unmask compiled"] * cost / peak
    print(json.dumps(results, indent=1))


def compare(recipe: Recipe, ours: list[Batch], theirs: list[Batch], steps: int, padded: bool) -> dict[str, float]:
    """Real tokens per second of each way to train, and the ratios."""
    speeds: dict[str, float] = {}
    for compiled in (False, True):
        name = "compiled" if compiled else "eager"
        speeds[f"transformers {name}"] = max(
            speed(peer(recipe, compiled, masked), theirs, steps) for masked in ({True} if padded else {True, False})
        )
        speeds[f"unmask {name}"] = speed(unmask(recipe, compiled), ours, steps)
        torch.cuda.empty_cache()
    best = speeds["unmask compiled"]
    return speeds | {
        "ratio to transformers eager": best / speeds["transformers eager"],
        "ratio to transformers compiled": best / speeds["transformers compiled"],
        "ratio eager to eager": speeds["unmask eager"] / speeds["transformers eager"],
    }


def unmask(recipe: Recipe, compiled: bool) -> Callable[[Batch], None]:
    trainer = Trainer(
        recipe.system.build(recipe, VOCABULARY, 0),  # type: ignore[attr-defined]
        recipe.optimise, Machine("cuda", half=True, compiled=compiled, recorded=compiled), 0,
    )  # fmt: skip

    def step(batch: Batch) -> None:
        trainer.system.train()
        trainer.gradients([batch], {}, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))

    return step


def peer(recipe: Recipe, compiled: bool, masked: bool) -> Callable[[Batch], None]:
    from transformers import BertConfig, BertForMaskedLM

    spec: Any = recipe.system.backbone
    config = BertConfig(
        vocab_size=VOCABULARY.size, hidden_size=spec.width, num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
        intermediate_size=spec.feedforward, max_position_embeddings=LENGTH, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    model = BertForMaskedLM(config).cuda().train()
    run = torch.compile(model, dynamic=False) if compiled else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step(batch: Batch) -> None:
        real = batch.real
        chosen = (torch.rand(batch.ids.shape, device="cuda") < 0.15) & real
        ids = torch.where(chosen, VOCABULARY.mask or 0, batch.ids)
        mask = real.long() if masked else None  # without padding either will do; the faster counts
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(input_ids=ids, attention_mask=mask, labels=torch.where(chosen, batch.ids, -100)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def speed(step: Callable[[Batch], None], batches: list[Batch], steps: int) -> float:
    """The median of three rounds of steps, run on without waiting for the device, after warming up on every batch."""
    moved = [batch.to("cuda") for batch in batches]
    tokens = [int(batch.real.sum()) for batch in batches]
    for batch in moved * 2:
        step(batch)
    rates = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for index in range(steps):
            step(moved[index % len(moved)])
        torch.cuda.synchronize()
        done = sum(tokens[index % len(moved)] for index in range(steps))
        rates.append(done / (time.perf_counter() - begin))
    return statistics.median(rates)


def full_rows(rows: int, seed: int) -> Batch:
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY.size, (rows, LENGTH), generator=random)
    place = torch.arange(LENGTH).expand(rows, LENGTH).contiguous()
    zeros = torch.zeros_like(ids)
    return Batch(
        ids=ids, columns={"word": place, "sentence": zeros}, example=zeros, segment=zeros, position=place, row=torch.arange(rows),
        visit=torch.zeros(rows, dtype=torch.long), summary=torch.arange(rows) * LENGTH,
        label=torch.zeros(rows, dtype=torch.long), counted=torch.ones(rows),
    )  # fmt: skip


def ragged_rows(folder: str, rows: int) -> tuple[list[Batch], list[Batch]]:
    """Document blocks of real text: packed for unmask, one per row for the peer, padded to the longest of a batch."""
    collection, tokenizer = Collection(Shards(folder).split("train")), Tokenizer.load(folder)
    given = (collection, tokenizer, "[CLS] a [SEP]", LENGTH, 0)
    packed, alone = (
        Loader([TrackReaders([arrange.open(*given)])], [1.0], rows)
        for arrange in (Blocks(cross=False, fill=True), Alone())
    )
    return [packed.batch(rows) for _ in range(4)], [alone.batch(rows) for _ in range(4)]


class Alone(Blocks):
    """Document blocks, one per row."""

    def __init__(self) -> None:
        super().__init__(cross=False)

    @property
    def packed(self) -> bool:
        return False


def matmul_peak() -> float:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        a @ b
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(20):
        a @ b
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
