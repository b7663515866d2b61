"""What a memory saves: one text scored by Transformer-XL, and by a network without a memory that slides token by token.

    python bench/memory.py [--size base] [--attention 3800] [--segment 512] [--device cuda]

Two networks with fresh weights and as many layers, widths and heads. With a memory, the text is read once, a segment at a
time, and every token may look back `attention` tokens and more; without, all of the `attention` tokens before a token are
read anew for it. Tokens per second of `unmask evaluate`'s two ways, and their ratio (Dai et al. 2019: more than 1,800).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unmask import recipes
from unmask.evaluate import evaluate_text
from unmask.infer import Model
from unmask.recipe import Recipe
from unmask.text import Bytes, Tokenizer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", default="base")
    options.add_argument("--attention", type=int, default=3800, help="tokens that every token may look back")
    options.add_argument(
        "--segment", type=int, nargs="+", default=[512, 4096], help="tokens read at once after a memory"
    )
    options.add_argument("--tokens", type=int, default=200_000, help="scored with a memory")
    options.add_argument("--slid", type=int, default=128, help="scored by sliding")
    options.add_argument("--device", default="cuda")
    chosen = options.parse_args()
    settings = [f"schedule.0.length={chosen.attention + 1}"]
    relative = recipes.get("transformer-xl", size=chosen.size)
    spec = relative.system.backbone  # type: ignore[attr-defined]
    same = [f"system.backbone.{name}={getattr(spec, name)}" for name in ("layers", "width", "heads", "feedforward")]
    plain = recipes.get(
        "gpt2", size="tiny", settings=[*settings, *same, f"system.backbone.length={chosen.attention + 1}"]
    )
    with TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"

        def seconds(model: Model, tokens: int, **how: Any) -> float:
            """Of scoring a text of so many tokens: the median of three times, after one that warms up."""
            text.write_bytes(np.random.default_rng(0).integers(97, 123, tokens - 1, dtype=np.uint8).tobytes())
            times = []
            for _ in range(4):
                begin = time.perf_counter()
                evaluate_text(model, text, whole=True, **how)
                times.append(time.perf_counter() - begin)
            return statistics.median(times[1:])

        sliding, window = fresh(plain, chosen.device), chosen.attention + 1
        one, more = (seconds(sliding, tokens, context=window, stride=1) for tokens in (window, window + chosen.slid))
        slow = chosen.slid / (
            more - one
        )  # less the first window, which scores all its tokens at once, and what else is done once
        remembering = fresh(relative, chosen.device)
        for segment in chosen.segment:
            few, many = (seconds(remembering, tokens, context=segment, memory=chosen.attention)
                         for tokens in (segment, segment + chosen.tokens))  # fmt: skip
            fast = chosen.tokens / (many - few)
            print(json.dumps({"segment": segment, "memory": chosen.attention, "tokens_per_second": fast,
                              "sliding": slow, "ratio": fast / slow}), flush=True)  # fmt: skip


def fresh(recipe: Recipe, device: str) -> Model:
    tokenizer = Tokenizer(Bytes().blank()[0])
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0).eval()  # type: ignore[attr-defined]
    return Model(system.to(device), recipe, tokenizer, Path("bench"), device)


if __name__ == "__main__":
    main()
