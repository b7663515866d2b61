"""ELECTRA's speed: unmask beside transformers' two Electra models trained by hand in one step, on one GPU, in one run.

    python bench/electra.py --data FOLDER [--size small] [--rows 128 512] [--compiled]

Rows are document blocks of real text (FOLDER is made by `unmask prepare`): the peer pads them to the longest of a batch,
unmask packs them; tokens are counted without padding. The peer is written as a person would: mask 15%, the generator's
loss, a sample at the masked places, the discriminator's loss on every token, embeddings shared, bfloat16, SDPA, fused
AdamW. unmask's steps are recorded, as in training; `--compiled` compiles both, which takes minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch
from train import Alone, speed  # beside this file

from unmask import recipes
from unmask.batch import Batch
from unmask.data import Blocks, Collection, Shards
from unmask.data.loader import Loader, TrackReaders
from unmask.data.reader import Reader
from unmask.recipe import Recipe
from unmask.text import Tokenizer
from unmask.train import Machine, Moment, Trainer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", required=True)
    options.add_argument("--size", default="small")
    options.add_argument("--rows", type=int, nargs="+", default=[128, 512])
    options.add_argument("--compiled", action="store_true", help="then both compiled, too")
    options.add_argument("--steps", type=int, default=20)
    chosen = options.parse_args()
    recipe = recipes.get("electra", size=chosen.size)
    tokenizer = Tokenizer.load(chosen.data)
    for rows in chosen.rows:
        packed, alone = batches(chosen.data, tokenizer, recipe.schedule[0].length, rows)
        for compiled in (False, True) if chosen.compiled else (False,):
            ours = speed(unmask(recipe, tokenizer, compiled), packed, chosen.steps)
            theirs = speed(peer(recipe, tokenizer, compiled), alone, chosen.steps)
            name = f"transformers {'compiled' if compiled else 'eager'}"
            print(json.dumps({"rows": rows, "unmask": ours, name: theirs, "ratio": ours / theirs}), flush=True)


def unmask(recipe: Recipe, tokenizer: Tokenizer, compiled: bool) -> Callable[[Batch], None]:
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    trainer = Trainer(system, recipe.optimise, Machine("cuda", half=True, compiled=compiled, recorded=True), 0)  # type: ignore[arg-type]
    system.train()

    def step(batch: Batch) -> None:
        trainer.gradients([batch], {"replaced": 50.0}, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))

    return step


def peer(recipe: Recipe, tokenizer: Tokenizer, compiled: bool) -> Callable[[Batch], None]:
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    mask, special = tokenizer.vocabulary.mask or 0, torch.tensor(tokenizer.vocabulary.special, device="cuda")
    narrow = recipe.system.backbone.embedding or recipe.system.backbone.width  # type: ignore[attr-defined]
    models = []
    system: Any = recipe.system
    for kind, spec in ((ElectraForMaskedLM, system.generator), (ElectraForPreTraining, system.backbone)):
        config = ElectraConfig(
            vocab_size=tokenizer.vocabulary.size, embedding_size=narrow,
            hidden_size=spec.width, num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
            intermediate_size=spec.feedforward, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        config._attn_implementation = "sdpa"
        models.append(kind(config).cuda().train())
    generator, discriminator = models
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.tie_weights()
    both = torch.nn.ModuleList(models)
    optimiser = torch.optim.AdamW(both.parameters(), lr=5e-4, fused=True)

    def losses(ids: torch.Tensor, real: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        hidden = torch.where(chosen, mask, ids)
        guessed = generator(input_ids=hidden, attention_mask=real, labels=torch.where(chosen, ids, -100))
        with torch.no_grad():
            asked = guessed.logits[chosen].float()
            noise = -torch.log(-torch.log(torch.rand_like(asked)))
            filled = ids.masked_scatter(chosen, (asked + noise).argmax(-1))
        judged = discriminator(input_ids=filled, attention_mask=real, labels=(filled != ids).long())
        return guessed.loss + 50 * judged.loss

    run = torch.compile(losses, dynamic=False) if compiled else losses

    def step(batch: Batch) -> None:
        chosen = (torch.rand(batch.ids.shape, device="cuda") < 0.15) & batch.real & ~torch.isin(batch.ids, special)
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(batch.ids, batch.real.long(), chosen)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(both.parameters(), 1.0)
        optimiser.step()

    return step


def batches(folder: str, tokenizer: Tokenizer, length: int, rows: int) -> tuple[list[Batch], list[Batch]]:
    """Document blocks, packed for unmask, one per row for the peer."""
    collection = Collection(Shards(folder).split("train"))
    made = []
    for arrange in (Blocks(cross=False, fill=True), Alone()):
        readers: list[Reader] = [arrange.open(collection, tokenizer, "[CLS] a [SEP]", length, 0)]
        loader = Loader([TrackReaders(readers)], [1.0], rows)
        made.append([loader.batch(rows) for _ in range(4)])
    return made[0], made[1]


if __name__ == "__main__":
    main()
