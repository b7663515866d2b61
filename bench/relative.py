"""What relative positions cost: a training step of Transformer-XL beside the same network with absolute positions.

    python bench/relative.py [--size base] [--rows 64] [--device cuda]

Both read rows of 512 tokens and a memory of 512. The other network adds learned positions to its embeddings and has the
fastest attention there is for keys and a memory: fused, causal from the lower right. Time of a whole step (forward, back,
update), compiled and recorded; peak memory of a whole step, compiled and not recorded (a recording keeps its own pool).
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right

from unmask.backbone import TransformerXL
from unmask.batch import Batch, Vocabulary
from unmask.hide import Next
from unmask.init_weights import InitWeights
from unmask.predict import Tokens
from unmask.recipe import Recipe, Stage
from unmask.recipes import transformer_xl
from unmask.see import LeftToRight
from unmask.system import Single
from unmask.train import AdamW, Machine, Moment, Trainer

LENGTH = 512
VOCABULARY = Vocabulary(size=260, pad=256, special=(256, 257))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, default=64)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--device", default="cuda")
    chosen = options.parse_args()
    spec = transformer_xl.SIZES[chosen.size]
    found = {name: measure(spec, absolute, chosen) for name, absolute in (("relative", False), ("absolute", True))}
    for name, numbers in found.items():
        print(json.dumps({"network": name} | numbers), flush=True)
    one, other = found["relative"], found["absolute"]
    print(json.dumps({f"ratio of {name}": one[name] / other[name] for name in one if other[name]}), flush=True)


def measure(spec: TransformerXL, absolute: bool, chosen: Any) -> dict[str, float]:
    batches = [made(chosen.rows, seed) for seed in range(4)]
    gpu = chosen.device != "cpu"
    peak = 0.0
    gc.collect()  # a compiled part and its network hold each other
    if gpu:
        torch.compiler.reset()
        torch.cuda.empty_cache()
        left = torch.cuda.memory_allocated()
        assert left < 2**28, f"{left:,} bytes of the network before are still there"
        step = training(spec, absolute, chosen.rows, Machine(chosen.device, half=True, compiled=True))
        for batch in batches:
            step(batch)
        torch.cuda.reset_peak_memory_stats()
        step(batches[0])
        peak = torch.cuda.max_memory_allocated() / 2**30
        del step
        gc.collect()
        torch.cuda.empty_cache()
    step = training(spec, absolute, chosen.rows, Machine(chosen.device, half=gpu, compiled=gpu, recorded=gpu))
    for batch in batches:
        step(batch)
    wait(gpu)
    begin = time.perf_counter()
    for index in range(chosen.steps):
        step(batches[index % 4])
    wait(gpu)
    seconds = (time.perf_counter() - begin) / chosen.steps
    return {"step_ms": 1e3 * seconds, "peak_gib": peak}


def training(spec: TransformerXL, absolute: bool, rows: int, machine: Machine) -> Callable[[Batch], None]:
    recipe = Recipe(
        name="bench", size="bench", tokenizer=None, layout="a", arrange=None, hide=Next(), see=LeftToRight(),  # type: ignore[arg-type]
        system=Single(backbone=spec), predict={"tokens": Tokens(transform=False)}, optimise=AdamW(rate=1e-4),
        schedule=(Stage(rows=1, length=LENGTH),),
    )  # fmt: skip
    system = Bare(recipe, absolute)
    trainer = Trainer(system, AdamW(rate=1e-4), machine, 0)
    with machine.autocast():
        trainer.memory[0] = system.backbone.first_state(rows)
    system.train()

    def step(batch: Batch) -> None:
        trainer.gradients([batch], {}, 1)
        trainer.update(Moment(step=1, before=0.0, after=0.001))
        assert trainer.memory[0].real.shape == (rows, spec.memory), "the memory is as long as it should be"

    return step


class Bare(nn.Module):
    """A language model and nothing around it."""

    def __init__(self, recipe: Recipe, absolute: bool) -> None:
        super().__init__()
        self.recipe: Any = recipe
        spec: Any = recipe.system.backbone  # type: ignore[attr-defined]
        torch.manual_seed(0)
        self.backbone = spec.build(VOCABULARY.size, "left")
        if absolute:
            for block in self.backbone.blocks:
                block.attention = Plain(spec.width, spec.heads, spec.head)
            self.backbone.embed = Placed(self.backbone.embed)
            self.backbone._relations = lambda *_: None  # nobody asks how far anything is
        self.head = recipe.predict["tokens"].build(spec.width, self.backbone.embed.token.weight, InitWeights())  # type: ignore[attr-defined]

    def compile_parts(self, on: bool = True) -> None:
        parts: list[Any] = [*self.backbone.parts, self.head]
        for part in parts:
            vars(part).pop("forward", None)
            if on:
                part.forward = torch.compile(part.forward, dynamic=False)

    def hide(self, batch: Batch, hide: Any = None) -> tuple[Batch, dict[str, Tensor]]:
        batch = self.recipe.see.apply(self.recipe.hide.apply(batch, VOCABULARY, 0))
        return batch, {"tokens": self.head.count(batch)}  # type: ignore[operator]

    def step(self, batch: Batch, state: Any) -> tuple[dict[str, Any], Any]:
        hidden, state = self.backbone(batch, state)
        return {"tokens": self.head(hidden, batch)}, state


class Placed(nn.Module):
    """Embeddings with learned positions."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.token, self.inner = inner.token, inner
        self.position = nn.Embedding(LENGTH, inner.token.weight.shape[1])

    def forward(self, batch: Batch) -> Tensor:
        return self.inner(batch) + self.position(batch.position)  # type: ignore[no-any-return]


class Plain(nn.Module):
    """Attention by content alone, over the memory and what stands before."""

    def __init__(self, width: int, heads: int, head: int) -> None:
        super().__init__()
        self.heads, self.head = heads, head
        self.query = nn.Linear(width, heads * head, bias=False)
        self.key_value = nn.Linear(width, 2 * heads * head, bias=False)
        self.out = nn.Linear(heads * head, width, bias=False)

    def forward(self, x: Tensor, asking: Any, memory: Tensor | None, relations: Any) -> tuple[Tensor, None]:
        read = x if memory is None else torch.cat((memory.to(x.dtype), x), 1)
        key, value = self.key_value(read).unflatten(2, (2 * self.heads, self.head)).transpose(1, 2).chunk(2, 1)
        q = self.query(x).unflatten(2, (self.heads, self.head)).transpose(1, 2)
        mask = causal_lower_right(q.shape[2], key.shape[2])
        return self.out(F.scaled_dot_product_attention(q, key, value, attn_mask=mask).transpose(1, 2).flatten(2)), None


def made(count: int, seed: int) -> Batch:
    ids = torch.randint(0, 256, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    place = torch.arange(LENGTH).expand(count, LENGTH).contiguous()
    zeros, one = torch.zeros_like(ids), torch.zeros(count, dtype=torch.long)
    return Batch(
        ids=ids, columns={"word": place, "sentence": zeros}, example=zeros, segment=zeros, position=place, row=one, visit=one, summary=one,
        label=one, counted=torch.ones(count),
    )  # fmt: skip


def wait(gpu: bool) -> None:
    if gpu:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
