"""Loader speed on one core: tokens per second, without padding, and the share of padding.

    python bench/loader.py DATA [--batches 60]

DATA is a folder made by `unmask prepare`. One thread makes the rows and collects them into batches.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

import torch

from unmask.data import Blocks, Collection, ContinuingPairs, ContinuingRows, FullRows, NextSentence, Shards
from unmask.data.loader import Loader, TrackReaders
from unmask.text import Tokenizer

CASES: dict[str, tuple[Any, str, int]] = {
    "BERT pairs, 128": (NextSentence(), "[CLS] a [SEP] b [SEP]", 128),
    "BERT pairs, 512": (NextSentence(), "[CLS] a [SEP] b [SEP]", 512),
    "RoBERTa blocks, filled, 512": (Blocks(fill=True), "[CLS] a [SEP]", 512),
    "RoBERTa blocks, 512": (Blocks(), "[CLS] a [SEP]", 512),
    "document blocks, 512": (Blocks(cross=False, fill=True), "[CLS] a [SEP]", 512),
    "GPT-2 stream, 1024": (FullRows(), "a [SEP]", 1024),
    "Transformer-XL streams, 512": (ContinuingRows(), "a [SEP]", 512),
    "XLNet rows, 512": (ContinuingPairs(), "a [SEP] b [SEP] [CLS]", 512),
}
STREAMS = 64


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--batches", type=int, default=60)
    chosen = options.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core for everything
    torch.set_num_threads(1)
    collection, tokenizer = Collection(Shards(chosen.data).split("train")), Tokenizer.load(chosen.data)
    results = {name: speed(*opened(collection, tokenizer, *case), chosen.batches) for name, case in CASES.items()}
    print(json.dumps(results, indent=1))


def opened(collection: Collection, tokenizer: Tokenizer, arrange: Any, layout: str, length: int) -> tuple[Any, int]:
    """The loader, and how many rows a batch takes."""
    rows = STREAMS if arrange.continuous else max(1, 65_536 // length)
    return Loader([TrackReaders([arrange.open(collection, tokenizer, layout, length, 0)])], [1.0], rows), rows


def speed(loader: Any, rows: int, batches: int) -> dict[str, float]:
    loader.batch(rows)
    real = places = 0
    begin = time.perf_counter()
    for _ in range(batches):
        batch = loader.batch(rows)
        real += int(batch.real.sum())
        places += batch.ids.numel()
    return {"million tokens per second": real / (time.perf_counter() - begin) / 1e6, "padding": 1 - real / places}


if __name__ == "__main__":
    main()
