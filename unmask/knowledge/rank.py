"""Score vectors by ranking: where is the true entity among all entities that could take its place?

Ranks are filtered (Bordes et al. 2013): entities that make another known triple are not counted. Entities with the same
score share the mean of their ranks, so a model that scores everything alike has the rank of a random choice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from unmask.knowledge.learn import Vectors
from unmask.knowledge.models import GraphModel

HEAD, TAIL = 0, 2  # the columns of triples that are asked for
_SCORES = 1 << 24  # scores in memory at a time


def ranks(model: GraphModel, vectors: Vectors, triples: np.ndarray, known: np.ndarray) -> np.ndarray:
    """2 x M: the filtered rank of each tail, then of each head, counted from 1. `known`: all true triples."""
    return np.concatenate([found for side in (TAIL, HEAD) for found in _side(model, vectors, triples, known, side)])


def scores_of(ranks: np.ndarray) -> dict[str, float]:
    """Mean rank, mean reciprocal rank, and the share of ranks up to 1, 3 and 10."""
    hits = {f"hits_{k}": float((ranks <= k).mean()) for k in (1, 3, 10)}
    return {"mean_rank": float(ranks.mean()), "mrr": float((1 / ranks).mean())} | hits


def _side(
    model: GraphModel, vectors: Vectors, triples: np.ndarray, known: np.ndarray, side: int
) -> Iterator[np.ndarray]:
    """The ranks of the heads or the tails, some questions at a time."""
    entities, relations, device = len(vectors.entities), len(vectors.relations), vectors.entities.device
    asked = _questions(known, side, relations)
    order = np.argsort(asked, kind="stable")
    asked, answers = asked[order], known[order, side]
    many = max(1, _SCORES // entities)
    for begin in range(0, len(triples), many):
        few = triples[begin : begin + many]
        questions = _questions(few, side, relations)
        first = np.searchsorted(asked, questions, "left")
        counts = np.searchsorted(asked, questions, "right") - first
        places = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        rows = torch.from_numpy(np.repeat(np.arange(len(few)), counts)).to(device)
        yield _ranked(model, vectors, few, side, rows, torch.from_numpy(answers[places]).to(device))


def _questions(triples: np.ndarray, side: int, relations: int) -> np.ndarray:
    """M: one number for what is given in each triple, when the head or the tail is asked for."""
    given: np.ndarray = triples[:, TAIL if side == HEAD else HEAD] * relations + triples[:, 1]
    return given


def _ranked(
    model: GraphModel, vectors: Vectors, triples: np.ndarray, side: int, rows: Tensor, columns: Tensor
) -> np.ndarray:
    """The ranks of some triples. `rows` and `columns`: the question and the entity of every known answer."""
    head, relation, tail = torch.from_numpy(triples).to(rows.device).unbind(1)
    entities, named = vectors.entities, vectors.relations[relation]
    if side == TAIL:
        scores, right = model.tails(entities[head], named, entities), tail
    else:
        scores, right = model.heads(named, entities[tail], entities), head
    wanted = scores.gather(1, right[:, None])
    scores[rows, columns] = -torch.inf  # the right answer too: it is counted by the 1 below
    better, equal = (scores > wanted).sum(1), (scores == wanted).sum(1)
    found: np.ndarray = (1 + better + equal / 2).double().cpu().numpy()
    return found
