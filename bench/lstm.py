"""What AWD-LSTM costs: its training step next to a plain torch.nn.LSTM of the same size, one after the other in the same run.

    python bench/lstm.py [--size base] [--rows 80] [--vocabulary 33278] [--device cuda]
    python bench/lstm.py --size tiny --rows 16 --vocabulary 2000 --device cpu

Both read rows of 70 tokens, carry their cells from step to step, predict the next token with tied embeddings, and make plain
gradient steps. The plain network has no dropout and no penalties, and its weights are those that torch keeps in one piece for
cuDNN. Time of a whole step: forward, backward, update. Both are measured in turns; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask import recipes
from unmask.backbone import LSTM
from unmask.batch import Batch, Vocabulary
from unmask.train import Machine, Moment, Trainer

LENGTH = 70


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, default=80)
    options.add_argument("--vocabulary", type=int, default=33_278)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--device", default="cuda")
    chosen = options.parse_args()
    if chosen.device != "cpu":
        torch.set_float32_matmul_precision("high")
    steps = {"awd-lstm": awd(chosen), "nn.LSTM": plain(chosen)}
    batches = [made(chosen.rows, chosen.vocabulary, seed).to(chosen.device) for seed in range(4)]
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(chosen.steps + 3):
        for name, step in steps.items():
            seconds = timed(step, batches[number % 4], chosen.device)
            taken[name] += [seconds] if number >= 3 else []  # the first steps choose kernels
    found = {name: statistics.median(times) for name, times in taken.items()}
    for name, seconds in found.items():
        tokens = chosen.rows * LENGTH / seconds
        print(json.dumps({"network": name, "step_ms": 1e3 * seconds, "tokens_per_second": tokens}), flush=True)
    print(json.dumps({"ratio": found["awd-lstm"] / found["nn.LSTM"]}), flush=True)


def timed(step: Callable[[Batch], None], batch: Batch, device: str) -> float:
    wait(device)
    begin = time.perf_counter()
    step(batch)
    wait(device)
    return time.perf_counter() - begin


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def awd(chosen: Any) -> Callable[[Batch], None]:
    """A training step of the recipe, as `unmask pretrain` makes it."""
    dropouts = [f"system.backbone.{name}={value}" for name, value in (("dropout", 0.4), ("input_dropout", 0.65),
                ("hidden_dropout", 0.3), ("embedding_dropout", 0.1), ("weight_dropout", 0.5))]  # fmt: skip
    recipe = recipes.get("awd-lstm", size=chosen.size, settings=dropouts)
    system = recipe.system.build(recipe, Vocabulary(chosen.vocabulary, 0, (0,)), 0)
    trainer = Trainer(system, recipe.optimise, Machine(chosen.device, half=chosen.device != "cpu"), 0)
    weights: Any = recipe.schedule[0].weights

    def step(batch: Batch) -> None:
        trainer.gradients([batch], weights, 1)
        trainer.update(Moment(1, 0.0, 0.1))

    return step


class Plain(nn.Module):
    """Layers of torch.nn.LSTM between tied embeddings."""

    def __init__(self, spec: LSTM, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, spec.width)
        pairs = zip(spec.widths, spec.widths[1:], strict=False)
        self.layers = nn.ModuleList(nn.LSTM(inputs, cells, batch_first=True) for inputs, cells in pairs)

    def forward(self, ids: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        x, after = self.embed(ids), []
        for layer, state in zip(self.layers, states, strict=True):
            x, kept = layer(x, state)
            after.append(tuple(part.detach() for part in kept))
        return F.linear(x[:, :-1].flatten(0, 1), self.embed.weight), after


def plain(chosen: Any) -> Callable[[Batch], None]:
    spec: Any = recipes.get("awd-lstm", size=chosen.size).system.backbone
    model = Plain(spec, chosen.vocabulary).to(chosen.device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    machine, states = Machine(chosen.device, half=chosen.device != "cpu"), [[None] * spec.layers]

    def step(batch: Batch) -> None:
        optimiser.zero_grad(set_to_none=True)
        with machine.autocast():
            scores, states[0] = model(batch.ids, states[0])
        F.cross_entropy(scores.float(), batch.ids[:, 1:].flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()

    return step


def made(rows: int, vocabulary: int, seed: int) -> Batch:
    """Rows of random tokens that continue the rows before."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, vocabulary, (rows, LENGTH), generator=random)
    zeros, number = torch.zeros_like(ids), torch.arange(rows)
    return Batch(
        ids=ids, example=zeros, segment=zeros, position=torch.arange(LENGTH).expand(rows, -1).contiguous(), row=number,
        visit=zeros[:, 0], summary=number * LENGTH, label=zeros[:, 0], counted=torch.ones(rows),
        columns={"word": zeros, "sentence": zeros}, per_row={"begins": torch.zeros(rows, dtype=torch.bool)},
    )  # fmt: skip


if __name__ == "__main__":
    main()
