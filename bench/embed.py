"""Vectors of texts per second: unmask beside sentence-transformers' encode, the same BERT in both, on one device, in one run.

    python bench/embed.py [--device cuda] [--size base] [--texts 100000] [--file texts.txt]
    python bench/embed.py --device cpu --size tiny --texts 500        a quick check that it runs

Texts are the lines of --file, or sentences of 4 to 60 made-up words. The network has fresh weights, mean pooling and a norm; float32
on a CPU, bfloat16 on a GPU in both. Tokenising is included. Both run in turn; the median of the rounds, after one that warms up, as a
line of JSON with the ratio and the largest difference of the vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unmask import recipes, text
from unmask.convert import export_sentence_transformers
from unmask.infer import Model, embed
from unmask.tasks import Embed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--size", default="base")
    options.add_argument("--texts", type=int, default=100_000)
    options.add_argument("--file", type=Path, default=None, help="texts, a line each")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--batch", type=int, default=32, help="texts in a batch of sentence-transformers")
    chosen = options.parse_args()
    half = torch.device(chosen.device).type == "cuda"
    texts = sentences(chosen.texts) if chosen.file is None else lines(chosen.file, chosen.texts)
    model = ours(chosen.size, texts, chosen.device)
    with tempfile.TemporaryDirectory() as folder:
        peer = theirs(model, Path(folder) / "model", chosen.device, half)
    if half:
        model.system.to(torch.bfloat16)
    runs: dict[str, Any] = {
        "unmask": lambda: embed(model, texts).value,
        "sentence-transformers": lambda: peer.encode(texts, batch_size=chosen.batch, show_progress_bar=False),
    }
    found = {name: run() for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(chosen.rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    speeds = {name: len(texts) / statistics.median(times) for name, times in seconds.items()}
    ours_, theirs_ = (np.asarray(found[name], np.float32) for name in runs)
    result = {"texts": len(texts), "device": chosen.device, "size": chosen.size, "threads": torch.get_num_threads(),
              "load": os.getloadavg()[0]}  # fmt: skip
    print(json.dumps(result | speeds | {"ratio": speeds["unmask"] / speeds["sentence-transformers"],
                                        "difference": float(np.abs(ours_ - theirs_).max())}))  # fmt: skip


def ours(size: str, texts: list[str], device: str) -> Model:
    """A BERT with fresh weights, adapted to embed."""
    # made-up sentences too, so that a few texts are enough
    tokenizer = text.train(text.WordPiece(vocab=2_000), [*texts[:20_000], *sentences(3_000)])
    base = recipes.get("bert", size=size)
    system = base.system.build(base, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    recipe = Embed(loss="negatives").recipe(Model(system, base, tokenizer, Path("bench")))
    made = recipe.system.build(recipe, tokenizer.vocabulary, 0).eval()  # type: ignore[attr-defined]
    return Model(made.to(device), recipe, tokenizer, Path("bench"), device)


def theirs(model: Model, folder: Path, device: str, half: bool) -> Any:
    from sentence_transformers import SentenceTransformer

    export_sentence_transformers(model, folder)
    options = {"torch_dtype": torch.bfloat16} if half else {}
    return SentenceTransformer(str(folder), device=device, model_kwargs=options)


def sentences(count: int) -> list[str]:
    """Sentences of 4 to 60 words, most of them short."""
    random = np.random.default_rng(0)
    words = np.array(["".join(random.choice(list("aeioustrnlm"), 5)) for _ in range(3_000)])
    lengths = np.clip(random.lognormal(2.8, 0.6, count), 4, 60).astype(int)
    return [" ".join(random.choice(words, length)) + "." for length in lengths]


def lines(file: Path, count: int) -> list[str]:
    with file.open(encoding="utf-8") as stream:
        found = [line.strip() for line in stream if line.strip()]
    return found[:count]


if __name__ == "__main__":
    main()
