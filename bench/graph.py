"""The speed of learning a graph's vectors, next to plain PyTorch code, in one run.

    python bench/graph.py TRIPLES [--device cuda] [--dims 100] [--rows 1024] [--negatives 1] [--epochs 3]

All learn TransE with L1 and margin 1 on the same triples, with the same rows and wrong triples in a step. The peer is what one
writes in PyTorch: two nn.Embedding, a DataLoader, automatic differentiation, Adam, entities of length 1. Seconds of an
epoch, the median of the epochs after the first. A line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from unmask.knowledge import Training, TransE
from unmask.knowledge.graph import Graph, read_graph
from unmask.knowledge.learn import first_vectors, learn


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("triples", type=Path)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--dims", type=int, default=100)
    options.add_argument("--rows", type=int, default=1024)
    options.add_argument("--negatives", type=int, default=1)
    options.add_argument("--epochs", type=int, default=3)
    chosen = options.parse_args()
    graph, _ = read_graph({"train": [chosen.triples]})
    training = Training(TransE(1), chosen.dims, chosen.epochs + 1, chosen.rows, chosen.negatives)
    ways: dict[str, Callable[[Graph, Training, str], Iterator[Tensor]]] = {"unmask": ours, "plain PyTorch": plain}
    found = {name: median_seconds(way(graph, training, chosen.device)) for name, way in ways.items()}
    about = vars(chosen) | {"triples": len(graph.splits["train"]), "entities": len(graph.entities)}
    ratio = found["plain PyTorch"] / found["unmask"]
    print(json.dumps(about | {"load": os.getloadavg()[0], "seconds": found, "ratio": ratio}), flush=True)


def ours(graph: Graph, training: Training, device: str) -> Iterator[Tensor]:
    vectors = first_vectors(training, len(graph.entities), len(graph.relations), device)
    return learn(vectors, torch.from_numpy(graph.splits["train"]).to(device), training)


def plain(graph: Graph, training: Training, device: str) -> Iterator[Tensor]:
    entities = nn.Embedding(len(graph.entities), training.dims, device=device)
    relations = nn.Embedding(len(graph.relations), training.dims, device=device)
    optimiser = torch.optim.Adam([*entities.parameters(), *relations.parameters()], lr=0.001)
    rows = TensorDataset(torch.from_numpy(graph.splits["train"]))
    loader = DataLoader(rows, training.rows, shuffle=True, pin_memory=device != "cpu")
    for _ in range(training.epochs):
        total = torch.zeros((), device=device)
        for (batch,) in loader:
            total += plain_step(batch.to(device), entities, relations, optimiser, training)
        yield total


def plain_step(
    batch: Tensor, entities: nn.Embedding, relations: nn.Embedding, optimiser: torch.optim.Optimizer, training: Training
) -> Tensor:
    false = batch[:, None].repeat(1, training.negatives, 1)
    other = torch.randint(len(entities.weight), false.shape[:2], device=batch.device)
    as_head = torch.rand(other.shape, device=batch.device) < 0.5
    false[..., 0] = torch.where(as_head, other, false[..., 0])
    false[..., 2] = torch.where(as_head, false[..., 2], other)

    def distance(triples: Tensor) -> Tensor:
        apart = entities(triples[..., 0]) + relations(triples[..., 1]) - entities(triples[..., 2])
        return apart.norm(p=1, dim=-1)

    loss = F.relu(training.margin + distance(batch)[:, None] - distance(false)).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    with torch.no_grad():
        entities.weight.copy_(F.normalize(entities.weight))
    return loss.detach()


def median_seconds(epochs: Iterator[Tensor]) -> float:
    """The median time of an epoch, without the first."""
    float(next(epochs))
    times, began = [], time.perf_counter()
    for loss in epochs:
        float(loss)  # waits for the device
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
    return statistics.median(times)


if __name__ == "__main__":
    main()
