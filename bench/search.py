"""Search speed on a CPU: one query against many vectors, and one query against 100 texts in three ways.

    python bench/search.py [--vectors 1000000] [--width 384] [--kinds ivf hnsw flat]
    python bench/search.py --vectors 20000 --size tiny           a quick check that it runs

Vectors: random ones, 100 around each of many centres, of length 1; the median of 200 queries, one at a time, the ten nearest; `recall` is the
share of the exact ten. The making of the index is timed too. Texts: 100 of about 30 tokens with a BERT of --size and fresh
weights: the pairs read together by a cross-encoder; each text read alone now, then compared (Siamese); only the query read, the
vectors of the texts in an index. Milliseconds, the median of the rounds. A line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unmask import recipes, text
from unmask.infer import Model, embed
from unmask.search.nearest import new_nearest, search_nearest
from unmask.search.rerank import rerank
from unmask.tasks import Classify, Embed

CANDIDATES, WORDS = 100, 12  # 12 of the words below are about 30 tokens


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--vectors", type=int, default=1_000_000)
    options.add_argument("--width", type=int, default=384)
    options.add_argument("--kinds", nargs="*", default=["ivf"])
    options.add_argument("--size", default="base")
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    if chosen.kinds:
        nearest_vectors(chosen.vectors, chosen.width, chosen.kinds)
    hundred_texts(chosen.size, chosen.rounds)


def nearest_vectors(count: int, width: int, kinds: list[Any]) -> None:
    vectors, queries = points(count, width)
    exact = exact_ten(vectors, queries)
    for kind in kinds:
        began = time.perf_counter()
        index, _ = new_nearest(vectors, kind)
        made = time.perf_counter() - began
        times, right = [], []
        for query, wanted in zip(queries, exact, strict=True):
            began = time.perf_counter()
            _, numbers = search_nearest(index, kind, query[None], 10)
            times.append(1000 * (time.perf_counter() - began))
            right.append(len(set(numbers[0].tolist()) & set(wanted.tolist())) / 10)
        print(json.dumps({"vectors": count, "width": width, "kind": kind, "make_seconds": round(made, 1),
                          "query_ms": round(statistics.median(times), 3), "slowest_ms": round(max(times), 3),
                          "recall": round(statistics.mean(right), 3), "load": os.getloadavg()[0]}), flush=True)  # fmt: skip


def points(count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors, and 200 queries near some of them."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(1, count // 100), width), np.float32)
    vectors = np.empty((count, width), np.float32)
    for begin in range(0, count, 50_000):
        few = vectors[begin : begin + 50_000]
        few[:] = centres[random.integers(len(centres), size=len(few))] + random.standard_normal(few.shape, np.float32)
        few /= np.linalg.norm(few, axis=1, keepdims=True)
    queries = vectors[random.integers(count, size=200)] + 0.02 * random.standard_normal((200, width), np.float32)
    return vectors, queries / np.linalg.norm(queries, axis=1, keepdims=True)


def exact_ten(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    scores = np.concatenate([queries @ vectors[b : b + 50_000].T for b in range(0, len(vectors), 50_000)], 1)
    return np.argpartition(-scores, 10, axis=1)[:, :10]


def hundred_texts(size: str, rounds: int) -> None:
    random = np.random.default_rng(0)
    words = np.array(["".join(random.choice(list("aeioustrnlm"), 5)) for _ in range(3_000)])
    texts = [" ".join(random.choice(words, WORDS)) for _ in range(CANDIDATES)]
    query = " ".join(words[:8])
    siamese, cross = models(size, texts)
    stored = embed(siamese, texts).value
    index, _ = new_nearest(stored, "flat")
    ways: dict[str, Callable[[], Any]] = {
        "cross-encoder": lambda: rerank(cross, query, texts),
        "Siamese, vectors made now": lambda: embed(siamese, texts).value @ embed(siamese, [query]).value[0],
        "Siamese, vectors in an index": lambda: search_nearest(index, "flat", embed(siamese, [query]).value, 10),
    }
    found = {name: round(median_ms(way, rounds), 1) for name, way in ways.items()}
    tokens = statistics.mean(len(siamese.tokenizer.encode(one)) for one in texts)
    about = {
        "size": size,
        "texts": len(texts),
        "tokens": tokens,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(about | {"ms": found}), flush=True)


def models(size: str, texts: list[str]) -> tuple[Model, Model]:
    """One that makes vectors and one that reads pairs, with fresh weights."""
    tokenizer = text.train(text.WordPiece(vocab=600), texts)
    base = recipes.get("bert", size=size)
    network = base.system.build(base, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    start = Model(network, base, tokenizer, Path("bench"))
    made = []
    for task in (Embed(loss="negatives"), Classify(labels=("0", "1"), texts=2)):
        recipe = task.recipe(start)
        system = recipe.system.build(recipe, tokenizer.vocabulary, 0).eval()  # type: ignore[attr-defined]
        made.append(Model(system, recipe, tokenizer, Path("bench")))
    return made[0], made[1]


def median_ms(run: Callable[[], Any], rounds: int) -> float:
    run()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


if __name__ == "__main__":
    main()
