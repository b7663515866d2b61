"""Beam search speed: unmask next to transformers' generate, the same BART in both, on one device, in one run.

    python bench/beam.py [--device cuda] [--size base] [--rows 1 32]
    python bench/beam.py --device cpu --size tiny        a quick check that it runs

Texts per second, the reading of the sources included: sources of 100 tokens, 60 new tokens (12 on a CPU), four beams, random
weights that never end a text, in bfloat16 on a GPU and float32 elsewhere; the median of the rounds, after one that warms up.
transformers runs with its default cache. A line of JSON for each number of rows, with the ratio; `same` is the share of tokens
that are equal (in bfloat16, texts differ where two tokens are equally likely).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from unmask import recipes
from unmask.convert import export_hf
from unmask.infer import Beams, Model, generate
from unmask.text import Tokenizer

VOCABULARY = 50_265
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--size", default="base")
    options.add_argument("--rows", type=int, nargs="+", default=[1, 32])
    options.add_argument("--source", type=int, default=100, help="tokens of a source, with its special tokens")
    options.add_argument("--tokens", type=int, default=None, help="new tokens")
    options.add_argument("--beams", type=int, default=4)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    half = torch.device(chosen.device).type == "cuda"
    chosen.tokens = chosen.tokens or (60 if half else 12)
    model = ours(chosen.size, chosen.device)
    with tempfile.TemporaryDirectory() as folder:
        network = peer(model, Path(folder) / "model", half)
    if half:
        model.system.to(torch.bfloat16)
    for rows in chosen.rows:
        sources = sources_of(rows, chosen.source - 2)
        speed, written = measured(lambda sources=sources: unmask(model, sources, chosen), chosen.rounds)
        theirs, expected = measured(
            lambda sources=sources: transformers(network, model, sources, chosen), chosen.rounds
        )
        result = {
            "rows": rows,
            "device": chosen.device,
            "size": chosen.size,
            "beams": chosen.beams,
            "tokens": chosen.tokens,
        }
        result |= {"unmask": speed, "transformers": theirs, "ratio": speed / theirs, "same": same(written, expected)}
        print(json.dumps(result), flush=True)


def ours(size: str, device: str) -> Model:
    """A BART with random weights that never ends a text."""
    recipe, tokenizer = recipes.get("bart", size=size), numbers()
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0).eval()  # type: ignore[attr-defined]
    with torch.no_grad():
        weight = system.backbone.embed.token.weight
        weight.mul_(10.0)  # with random weights all tokens are about equally likely
        weight[tokenizer.role("sep")] = 0.0
    return Model(system.to(device), recipe, tokenizer, Path("bench"), device)


def numbers() -> Tokenizer:
    """As many tokens as BART's tokenizer has: the special tokens, then the words 0, 1, 2 ..."""
    words = {name: place for place, name in enumerate(SPECIAL)}
    words |= {str(number): len(SPECIAL) + number for number in range(VOCABULARY - len(SPECIAL))}
    backend = Backend(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.WhitespaceSplit(), decoders.WordPiece(prefix="##")
    backend.add_special_tokens(SPECIAL)
    return Tokenizer(backend)


def peer(model: Model, folder: Path, half: bool) -> Any:
    from transformers import BartForConditionalGeneration

    export_hf(model, folder)
    network = BartForConditionalGeneration.from_pretrained(folder).eval()
    never = [i for i in model.tokenizer.vocabulary.special if i != model.tokenizer.role("sep")]
    network.final_logits_bias[0, never] = -1e4  # as here, special tokens have no probability
    return network.to(model.device, torch.bfloat16 if half else torch.float32)


def sources_of(rows: int, tokens: int) -> list[str]:
    drawn = torch.randint(VOCABULARY - len(SPECIAL), (rows, tokens), generator=torch.Generator().manual_seed(0))
    return [" ".join(map(str, row)) for row in drawn.tolist()]


def unmask(model: Model, sources: list[str], chosen: argparse.Namespace) -> list[list[int]]:
    found = generate(model, sources, tokens=chosen.tokens, sampling=Beams(chosen.beams, least=chosen.tokens)).value
    return [list(one.ids) for one in found]


def transformers(network: Any, model: Model, sources: list[str], chosen: argparse.Namespace) -> list[list[int]]:
    begin, end = model.tokenizer.role("cls"), model.tokenizer.role("sep")
    ids = torch.tensor([[begin, *model.tokenizer.encode(source), end] for source in sources], device=model.device)
    first = torch.tensor([[end, begin]], device=model.device).expand(len(ids), -1)
    found = network.generate(
        ids, attention_mask=torch.ones_like(ids), decoder_input_ids=first, do_sample=False, num_beams=chosen.beams,
        max_new_tokens=chosen.tokens, min_new_tokens=chosen.tokens, eos_token_id=end,
        pad_token_id=model.tokenizer.vocabulary.pad, forced_bos_token_id=None, forced_eos_token_id=None,
    )  # fmt: skip
    rows: list[list[int]] = found[:, 2:].tolist()
    return rows


def measured(run: Callable[[], list[list[int]]], rounds: int) -> tuple[float, list[list[int]]]:
    """Texts per second, and the tokens."""
    written, speeds = run(), []
    for _ in range(rounds):
        begin = time.perf_counter()
        written = run()  # ends with the tokens on the host: nothing is left to wait for
        speeds.append(len(written) / (time.perf_counter() - begin))
    return statistics.median(speeds), written


def same(ours: list[list[int]], theirs: list[list[int]]) -> float:
    pairs = [(a, b) for mine, other in zip(ours, theirs, strict=True) for a, b in zip(mine, other, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


if __name__ == "__main__":
    main()
