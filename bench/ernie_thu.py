"""ERNIE of Tsinghua beside BERT: the speed of training steps on a GPU, on text that is linked to a graph.

    python bench/ernie_thu.py LINKED [--size base] [--steps 40] [--plain]

LINKED is a folder made by `unmask prepare --graph`. Tokens are counted with padding, as elsewhere.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from ernie2 import training

from unmask import recipes
from unmask.data import Collection
from unmask.pretraining import Mixture


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data")
    options.add_argument("--size", default="base")
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--plain", action="store_true", help="record the training steps, but do not compile them")
    chosen = options.parse_args()
    mixture = Mixture.open([chosen.data])
    ernie, bert = (recipes.get(name, size=chosen.size) for name in ("ernie-thu", "bert"))
    found = training(mixture, ernie, bert, chosen.steps, compiled=not chosen.plain)
    print(json.dumps({"linked tokens": linked(mixture), "training, tokens a second": found}, indent=1))


def linked(mixture: Mixture) -> float:
    """The share of tokens at which an entity begins."""
    collection = Collection(mixture.shards[0].split("train"))
    some = collection.gather(np.arange(1_000))
    return float((some.columns["links"].values >= 0).mean())


if __name__ == "__main__":
    main()
