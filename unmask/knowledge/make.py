"""From a file of triples to a folder of vectors: read, hold out, learn, keep the best, rank, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unmask import chance
from unmask.errors import require
from unmask.knowledge.entity_names import read_names
from unmask.knowledge.folder import claim, write_folder
from unmask.knowledge.graph import Graph, hold_out, read_graph
from unmask.knowledge.learn import Training, Vectors, first_vectors, learn
from unmask.knowledge.rank import ranks, scores_of

CHECKS = 10  # how often dev triples are ranked during training
CHECKED = 1_000  # dev triples that are ranked each time


def make_vectors(
    files: Sequence[str | Path], out: str | Path, training: Training, *, dev: Sequence[str | Path] = (),
    test: Sequence[str | Path] = (), holdout: float = 0.02, names: str | Path | None = None, device: str = "cpu",
    overwrite: bool = False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Learn the vectors of a graph and write their folder. Yields a record after each epoch; the last is the summary.

    `dev`: triples that choose the best vectors of the training. `test`: triples that the vectors are scored on.
    `holdout`: without `test`, the share of the triples that is not trained on, but scored."""
    out = Path(out)
    claim(out, overwrite=overwrite)
    graph, notes = read_graph({"train": files, "dev": dev, "test": test})
    graph = graph if test else hold_out(graph, holdout, training.seed)
    called, unnamed = read_names(None if names is None else Path(names), graph.entities)
    notes += unnamed + _unseen(graph)
    if not len(graph.splits["test"]) and (test or holdout):
        notes[
            "triples are left to rank, so there are no scores: give more triples, a larger --holdout or another --test"
        ] = 0
    vectors = first_vectors(training, len(graph.entities), len(graph.relations), device)
    vectors = yield from _learned(graph, vectors, training)
    tested = graph.splits["test"]
    scores = scores_of(ranks(training.model, vectors, tested, graph.known)) if len(tested) else {}
    about = write_folder(out, graph, called, vectors, training, scores)
    yield asdict(about) | {"folder": str(out), "notes": dict(notes)}


def _learned(graph: Graph, vectors: Vectors, training: Training) -> Any:
    """Train the vectors, yielding records; returns the last ones, or those that rank the dev triples best."""
    triples, best = torch.from_numpy(graph.splits["train"]).to(vectors.entities.device), (-1.0, vectors)
    dev, known = _some(graph.splits["dev"], training.seed), graph.known
    checked = {round(training.epochs * number / CHECKS) for number in range(1, CHECKS + 1)}
    for epoch, loss in enumerate(learn(vectors, triples, training), 1):
        record = {
            "epochs": epoch,
            "epochs_total": training.epochs,
            "triples": epoch * len(triples),
            "loss": float(loss),
        }
        if len(dev) and epoch in checked:
            mrr = scores_of(ranks(training.model, vectors, dev, known))["mrr"]
            record["dev_mrr"] = mrr
            if mrr > best[0]:
                best = mrr, Vectors(vectors.entities.clone(), vectors.relations.clone())
        yield record
        require(
            bool(torch.isfinite(loss)),
            "the loss became {loss} in epoch {epoch}: lower --rate (it is {rate:g})",
            loss=float(loss),
            epoch=epoch,
            rate=training.rate,
        )
    return best[1]


def _some(triples: np.ndarray, seed: int) -> np.ndarray:
    """At most `CHECKED` triples, drawn at random."""
    drawn = chance.draw(np.arange(len(triples)), seed, chance.purpose("checked triples"))
    return triples[np.argsort(drawn, kind="stable")[:CHECKED]]


def _unseen(graph: Graph) -> Counter[str]:
    """A note on test triples about which nothing can be learned."""
    seen = np.zeros(len(graph.entities), dtype=bool)
    seen[graph.splits["train"][:, [0, 2]].ravel()] = True
    count = int((~seen[graph.splits["test"][:, [0, 2]]].all(1)).sum())
    return Counter({"test triples with an entity that no training triple has": count} if count else {})
