"""Denoising speed: unmask's BART on packed rows beside transformers' BartForConditionalGeneration on padded ones, in one run.

    python bench/denoise.py [--data FOLDER] [--size base] [--documents 96]

Documents are blocks of real text (--data, made by `unmask prepare` with BART's tokenizer), or random tokens with lengths of real
documents (log-normal, half of them under 200 tokens). The peer reads the documents of a batch one per row, padded to the longest,
and gets its corrupted rows ready-made: only unmask's steps include the corruption. Tokens are those of the text, without padding.
On a GPU both train in bfloat16 with SDPA or variable-length attention, no dropout on attention weights, 10% elsewhere, and fused
AdamW. Then: the share of a step that each corruption takes. Each number is printed when it is known, with the time; on a GPU the
first step of each compiled network takes a minute or more. On a CPU everything is tiny, in float32, to try the script.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from unmask import recipes
from unmask.batch import Batch, Vocabulary
from unmask.data import Blocks, Collection, Shards
from unmask.data.loader import Loader, TrackReaders
from unmask.data.pack import MOST_EXAMPLES, assign
from unmask.hide import apply_rules
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.text import Tokenizer
from unmask.train import Machine, Trainer
from unmask.train.plan import Moment

SIZES = {"cpu": 1_000}  # of the vocabulary; on a GPU, and with --data, BART's own
FIRST = Moment(step=1, before=0.0, after=0.001)
SPANS = "units=Spans(of=Tokens, lengths=Poisson)"
CORRUPTIONS = {
    "infill and permute (the recipe)": None,
    "infill": f"hide=(Rewrite, Masked({SPANS}, budget=0.3, replace=Infill, at=none))",
    "mask tokens": "hide=(Rewrite, Masked(budget=0.3, replace=Mask(mask=1.0, random=0.0), at=none))",
    "delete": "hide=(Rewrite, Masked(budget=0.3, replace=Delete, at=none))",
    "permute sentences": "hide=(Rewrite, PermuteSentences)",
    "rotate": "hide=(Rewrite, Rotate)",
    "window (MASS)": "hide=Window",
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", default=None)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--size", default=None)
    options.add_argument("--documents", type=int, default=None)
    options.add_argument("--length", type=int, default=None)
    options.add_argument("--steps", type=int, default=12)
    chosen = options.parse_args()
    gpu = chosen.device != "cpu"
    size, length = chosen.size or ("base" if gpu else "tiny"), chosen.length or (512 if gpu else 64)
    documents, steps = chosen.documents or (96 if gpu else 8), chosen.steps if gpu else 2
    recipe = recipes.get("bart", size=size, settings=[f"schedule.0.length={length}"])
    tell(f"{'reading' if chosen.data else 'drawing'} {documents} documents of up to {length} tokens a batch")
    vocabulary = Tokenizer.load(chosen.data).vocabulary if chosen.data else drawn_vocabulary(chosen.device)
    packed, alone = real(chosen.data, documents, length) if chosen.data else random(documents, length, vocabulary)
    results: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if gpu else "cpu",
        "torch": torch.__version__,
        "rows": {"packed": packed[0].shape, "padded": alone[0].shape},
        "full": {"packed": fullness(packed), "padded": fullness(alone)},
    }
    print(json.dumps(results), flush=True)
    print(json.dumps(compare(recipe, vocabulary, packed, alone, steps, chosen.device), indent=1), flush=True)
    torch._dynamo.config.recompile_limit = 64  # one process compiles every corruption
    for name, setting in CORRUPTIONS.items():
        changed = override(recipe, [setting] if setting else [])
        found = hiding(changed, vocabulary, packed[0], chosen.device)
        print(json.dumps({"corruption": name} | found), flush=True)
        freed(chosen.device)


def tell(about: str) -> None:
    """Progress, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {about}", file=sys.stderr, flush=True)


def drawn_vocabulary(device: str) -> Vocabulary:
    """The vocabulary of random documents."""
    return Vocabulary(size=SIZES.get(device, 50_265), pad=1, special=(0, 1, 2, 3, 4), mask=4, unknown=3, end=2)


def freed(device: str) -> None:
    """Free the memory of the network that was measured: a trainer refers to itself, and its recordings keep memory."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def compare(
    recipe: Recipe, vocabulary: Vocabulary, ours: list[Batch], theirs: list[Batch], steps: int, device: str
) -> dict[str, float]:
    """Real tokens per second of each way to train, and the ratios."""
    speeds: dict[str, float] = {}
    for compiled in (False, True) if device != "cpu" else (False,):
        name = "compiled" if compiled else "eager"
        for who, made, batches in (("transformers", peer, theirs), ("unmask", unmask, ours)):
            tell(f"{who} {name}: {2 * len(batches)} steps to warm up, then {3 * steps}")
            speeds[f"{who} {name}"] = speed(made(recipe, vocabulary, compiled, device), batches, steps, device)
            tell(f"{who} {name}: {speeds[f'{who} {name}']:,.0f} tokens a second")
            freed(device)
    best = speeds[f"unmask {name}"]
    return speeds | {f"ratio to transformers {n}": best / speeds[f"transformers {n}"] for n in ("eager", name)}


def unmask(recipe: Recipe, vocabulary: Vocabulary, compiled: bool, device: str) -> Callable[[Batch], None]:
    machine = Machine(device, half=device != "cpu", compiled=compiled, recorded=compiled)
    trainer = Trainer(recipe.system.build(recipe, vocabulary, 0), recipe.optimise, machine, 0)
    trainer.system.train()

    def step(batch: Batch) -> None:
        trainer.gradients([batch], {}, 1)
        trainer.update(FIRST)

    return step


def peer(recipe: Recipe, vocabulary: Vocabulary, compiled: bool, device: str) -> Callable[[Batch], None]:
    from transformers import BartConfig, BartForConditionalGeneration

    spec: Any = recipe.system.backbone
    config = BartConfig(
        vocab_size=vocabulary.size, d_model=spec.width, encoder_layers=spec.layers, decoder_layers=spec.decoder_layers,
        encoder_attention_heads=spec.heads, decoder_attention_heads=spec.heads, encoder_ffn_dim=spec.feedforward,
        decoder_ffn_dim=spec.feedforward, max_position_embeddings=spec.length, attention_dropout=0.0, use_cache=False,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    model = BartForConditionalGeneration(config).to(device).train()
    run = torch.compile(model, dynamic=False) if compiled else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device != "cpu")
    ready: dict[int, dict[str, torch.Tensor]] = {}

    def step(batch: Batch) -> None:
        if id(batch) not in ready:
            ready[id(batch)] = inputs(recipe, vocabulary, batch)
        given = ready[id(batch)]
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
            loss = run(**given).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimiser.step()

    return step


def inputs(recipe: Recipe, vocabulary: Vocabulary, batch: Batch) -> dict[str, torch.Tensor]:
    """The corrupted rows as transformers reads them."""
    hidden = apply_rules(recipe.hide, batch, vocabulary, 0)
    assert hidden.decoder is not None
    return {
        "input_ids": hidden.ids,
        "attention_mask": hidden.real.long(),
        "decoder_input_ids": hidden.decoder.ids,
        "labels": torch.where(batch.real, batch.ids, -100),
    }


def hiding(recipe: Recipe, vocabulary: Vocabulary, batch: Batch, device: str) -> dict[str, float]:
    """Milliseconds of hiding and of the whole step, and the share."""
    gpu = device != "cpu"
    machine = Machine(device, half=gpu, compiled=gpu, recorded=gpu)
    trainer = Trainer(recipe.system.build(recipe, vocabulary, 0), recipe.optimise, machine, 0)
    trainer.system.train()
    batch = batch.to(device)

    def step() -> None:
        trainer.gradients([batch], {}, 1)
        trainer.update(FIRST)

    whole, alone = seconds(step, device), seconds(lambda: trainer.hide(batch, None), device)
    return {"hide_ms": 1e3 * alone, "step_ms": 1e3 * whole, "share": alone / whole}


def seconds(work: Callable[[], object], device: str) -> float:
    """Of one call, the best of three rounds, after warming up."""
    rounds, best = 20 if device != "cpu" else 1, float("inf")
    for _ in range(3 if device != "cpu" else 1):
        work()
    for _ in range(3):
        wait(device)
        begin = time.perf_counter()
        for _ in range(rounds):
            work()
        wait(device)
        best = min(best, (time.perf_counter() - begin) / rounds)
    return best


def speed(step: Callable[[Batch], None], batches: list[Batch], steps: int, device: str) -> float:
    """The median of three rounds of steps, run on without waiting for the device, after warming up on every batch."""
    moved = [batch.to(device) for batch in batches]
    tokens = [int(batch.real.sum()) for batch in batches]
    for batch in moved * 2:
        step(batch)
    rates = []
    for _ in range(3):
        wait(device)
        begin = time.perf_counter()
        for index in range(steps):
            step(moved[index % len(moved)])
        wait(device)
        rates.append(sum(tokens[index % len(moved)] for index in range(steps)) / (time.perf_counter() - begin))
    return statistics.median(rates)


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def fullness(batches: list[Batch]) -> float:
    """The share of all places that are tokens."""
    return float(sum(batch.real.sum() for batch in batches) / sum(batch.ids.numel() for batch in batches))


def random(documents: int, length: int, vocabulary: Vocabulary) -> tuple[list[Batch], list[Batch]]:
    """Batches of random documents: packed into full rows, and one per row. Sentences have twenty tokens."""
    dice = np.random.default_rng(0)
    packed, alone = [], []
    sizes = [np.clip(dice.lognormal(np.log(0.4 * length), 0.9, documents).astype(int), 8, length) for _ in range(4)]
    assigned = [assign(some, length, MOST_EXAMPLES) for some in sizes]
    rows = max(int(row.max()) + 1 for row, _ in assigned)  # one shape for all batches
    for some, (row, slot) in zip(sizes, assigned, strict=True):
        ids = [dice.integers(5, vocabulary.size, size) for size in some]
        packed.append(laid(ids, row, slot, rows, length, vocabulary))
        alone.append(laid(ids, np.arange(documents), np.zeros(documents, int), documents, int(some.max()), vocabulary))
    return packed, alone


def laid(
    ids: list[np.ndarray], row: np.ndarray, slot: np.ndarray, rows: int, length: int, vocabulary: Vocabulary
) -> Batch:
    """Documents in rows, each with its special tokens in its first and its last place."""
    places = int(slot.max()) + 1
    token, example = np.full((rows, length), vocabulary.pad), np.full((rows, length), -1)
    word, sentence, position = (np.full((rows, length), fill) for fill in (-1, -1, 0))
    used, counted = np.zeros(rows, int), np.zeros((rows, places), np.float32)
    summary = np.zeros((rows, places), int)
    for number in np.lexsort((slot, row)):
        at, own, size = row[number], slot[number], len(ids[number])
        place = slice(used[at], used[at] + size)
        token[at, place], example[at, place], position[at, place] = ids[number], own, np.arange(size)
        token[at, place.start], token[at, place.stop - 1] = 0, vocabulary.end
        inside = slice(place.start + 1, place.stop - 1)
        word[at, inside] = np.arange(inside.start, inside.stop)
        sentence[at, inside] = np.arange(inside.start, inside.stop) // 20
        summary[at, own], counted[at, own], used[at] = at * length + place.start, 1.0, place.stop
    tensors = [torch.from_numpy(values) for values in (token, example, position, word, sentence, summary.ravel())]
    ids_, example_, position_, word_, sentence_, summary_ = tensors
    return Batch(
        ids=ids_, example=example_, segment=torch.zeros_like(ids_), position=position_, row=torch.arange(rows),
        visit=torch.zeros(rows, dtype=torch.long), summary=summary_, label=torch.zeros_like(summary_),
        counted=torch.from_numpy(counted.ravel()), columns={"word": word_, "sentence": sentence_},
    )  # fmt: skip


class Alone(Blocks):
    """Document blocks, one per row."""

    def __init__(self) -> None:
        super().__init__(cross=False)

    @property
    def packed(self) -> bool:
        return False


def real(folder: str, documents: int, length: int) -> tuple[list[Batch], list[Batch]]:
    """Document blocks of real text: packed for unmask, one per row for the peer, padded to the longest of a batch."""
    collection, tokenizer = Collection(Shards(folder).split("train")), Tokenizer.load(folder)
    given = (collection, tokenizer, "[CLS] a [SEP]", length, 0)
    alone, packed = (
        Loader([TrackReaders([arrange.open(*given)])], [1.0], documents) for arrange in (Alone(), Blocks(cross=False))
    )
    padded = [alone.batch(documents) for _ in range(4)]
    rows = max(1, round(documents * fullness(padded)))
    return [packed.batch(rows) for _ in range(4)], padded


if __name__ == "__main__":
    main()
