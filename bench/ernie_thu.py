"""ERNIE of Tsinghua beside BERT: the speed of training steps on a GPU, on text that is linked to a graph.

    python bench/ernie_thu.py LINKED [--size base] [--steps 40] [--plain]

LINKED is a folder made by `unmask prepare --graph`. Tokens are counted with padding, as elsewhere. Each number is printed when it
is known. On a CPU everything is tiny, to try the script.
"""

from __future__ import annotations

import json

import numpy as np
from ernie2 import arguments, measured, tell, training

from unmask.data import Collection
from unmask.pretraining import Mixture


def main() -> None:
    chosen = arguments(__doc__).parse_args()
    share = linked(Mixture.open([chosen.data]))
    tell(f"{share:.2%} of the tokens are linked")
    found = training(measured(chosen, "ernie-thu"), measured(chosen, "bert"))
    print(json.dumps({"linked tokens": share, "training, tokens a second": found}, indent=1))


def linked(mixture: Mixture) -> float:
    """The share of tokens at which an entity begins."""
    collection = Collection(mixture.shards[0].split("train"))
    some = collection.gather(np.arange(min(1_000, len(collection))))
    return float((some.columns["links"].values >= 0).mean())


if __name__ == "__main__":
    main()
