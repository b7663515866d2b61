"""Generation speed: unmask beside transformers' generate, the same GPT-2 in both, on one device, in one run.

    python bench/generate.py [--device cuda] [--size base] [--rows 1 32]
    python bench/generate.py --device cpu --size tiny        a quick check that it runs

New tokens per second, the reading of the prompts included: 128 tokens of prompt, 256 new ones (16 on a CPU), always the
likeliest, in bfloat16 on a GPU and float32 elsewhere; the median of the rounds, after one that warms up. transformers
runs with its default cache, and with its static cache, which it compiles on a GPU. A line of JSON each, with the ratio;
`same` is the share of tokens that are equal (in bfloat16, texts part where two tokens are as likely).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from unmask import recipes
from unmask.convert import export_hf
from unmask.infer import Greedy, Model, generate
from unmask.text import Tokenizer

VOCABULARY = 50_257
PEERS: dict[str, dict[str, Any]] = {"transformers": {}, "transformers static": {"cache_implementation": "static"}}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, nargs="+", default=[1, 32])
    options.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    options.add_argument("--tokens", type=int, default=None, help="new tokens")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    chosen = options.parse_args()
    half = torch.device(chosen.device).type == "cuda"
    chosen.tokens = chosen.tokens or (256 if half else 16)
    model = ours(chosen.size, chosen.device)
    with tempfile.TemporaryDirectory() as folder:
        network = peer(model, Path(folder) / "model", half)
    if half:
        model.system.to(torch.bfloat16)
    for rows in chosen.rows:
        prompts = prompts_of(rows, chosen.prompt)
        speed, written = measured(partial(unmask, model, prompts, chosen.tokens), chosen)
        for name in chosen.peers:
            run = peer_run(network, model, prompts, chosen.tokens, PEERS[name])
            result: dict[str, Any] = {"rows": rows, "device": chosen.device, "size": chosen.size, "unmask": speed}
            try:
                theirs, expected = measured(run, chosen)
            except Exception as error:  # the peer's own; the other lines are worth having
                print(json.dumps(result | {name: f"{type(error).__name__}: {str(error)[:200]}"}), flush=True)
                continue
            print(
                json.dumps(result | {name: theirs, "ratio": speed / theirs, "same": same(written, expected)}),
                flush=True,
            )


def ours(size: str, device: str) -> Model:
    """A GPT-2 with fresh weights that never ends a text."""
    recipe, tokenizer = recipes.get("gpt2", size=size), numbers()
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0).eval()  # type: ignore[attr-defined]
    with torch.no_grad():
        weight = system.backbone.embed.token.weight
        weight.mul_(10.0)  # fresh weights find all tokens about as likely
        weight[tokenizer.role("sep")] = 0.0
    return Model(system.to(device), recipe, tokenizer, Path("bench"), device)


def numbers() -> Tokenizer:
    """As many tokens as GPT-2's has: the words 0, 1, 2 ..."""
    words = {str(number): number for number in range(VOCABULARY - 1)}
    backend = Backend(models.WordLevel(words, unk_token="0"))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.WhitespaceSplit(), decoders.WordPiece(prefix="##")
    backend.add_special_tokens(["<|endoftext|>"])
    return Tokenizer(backend)


def peer(model: Model, folder: Path, half: bool) -> Any:
    from transformers import GPT2LMHeadModel

    export_hf(model, folder)
    return GPT2LMHeadModel.from_pretrained(folder).to(model.device, torch.bfloat16 if half else torch.float32).eval()


def prompts_of(rows: int, tokens: int) -> list[str]:
    drawn = torch.randint(VOCABULARY - 1, (rows, tokens), generator=torch.Generator().manual_seed(0))
    return [" ".join(map(str, row)) for row in drawn.tolist()]


def unmask(model: Model, prompts: list[str], tokens: int) -> list[list[int]]:
    return [list(found.ids) for found in generate(model, prompts, tokens=tokens, sampling=Greedy()).value]


def peer_run(
    network: Any, model: Model, prompts: list[str], tokens: int, extra: dict[str, Any]
) -> Callable[[], list[list[int]]]:
    def run() -> list[list[int]]:
        ids = torch.tensor([model.tokenizer.encode(prompt) for prompt in prompts], device=model.device)
        found = network.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens, eos_token_id=None,
            pad_token_id=model.tokenizer.role("sep"), **extra,
        )  # fmt: skip
        rows: list[list[int]] = found[:, ids.shape[1] :].tolist()
        return rows

    return run


def measured(run: Callable[[], list[list[int]]], chosen: argparse.Namespace) -> tuple[float, list[list[int]]]:
    """New tokens per second, and the tokens."""
    written, speeds = run(), []
    for _ in range(chosen.rounds):
        begin = time.perf_counter()
        written = run()  # ends with the tokens on the host: nothing is left to wait for
        speeds.append(sum(map(len, written)) / (time.perf_counter() - begin))
    return statistics.median(speeds), written


def same(ours: list[list[int]], theirs: list[list[int]]) -> float:
    pairs = [(a, b) for mine, other in zip(ours, theirs, strict=True) for a, b in zip(mine, other, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


if __name__ == "__main__":
    main()
