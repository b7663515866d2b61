"""Every recipe, at size tiny, with data of its own kind of tokenizer: the contracts run over all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
import torch

from unmask import recipes, text
from unmask.batch import Batch
from unmask.pretraining import Mixture
from unmask.recipe import Recipe

KIND = {
    text.WordPiece: "wordpiece", text.ByteBPE: "byte-bpe", text.Unigram: "unigram", text.WordBPE: "word-bpe",
    text.Bytes: "bytes",
}  # fmt: skip
LENGTH = 32


@dataclass(frozen=True)
class Case:
    recipe: Recipe
    tokenizer: text.Tokenizer
    data: Path

    def system(self, seed: int = 0):
        return self.recipe.system.build(self.recipe, self.tokenizer.vocabulary, seed)

    def batch(self, rows: int, length: int = LENGTH) -> Batch:
        """The first rows of the data."""
        return Mixture.open([self.data]).loader(self.recipe, length, 0, None, rows).batch(rows)


@pytest.fixture(params=recipes.names())
def case(request, tokenizers, shards) -> Case:
    stages = recipes.get(request.param, size="tiny").schedule
    lengths = [f"schedule.{i}.length={LENGTH * (i + 1)}" for i in range(len(stages))]
    recipe = recipes.get(request.param, size="tiny", settings=[*lengths, "schedule.*.rows=8", "optimise.warmup=0.1"])
    kind = KIND[type(recipe.tokenizer)]
    return Case(recipe, tokenizers[kind], shards[kind])


def some_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """These rows of a batch, in this order, with all that they have."""
    chosen, (count, length) = torch.tensor(list(rows)), batch.shape
    stored = {f.name: getattr(batch, f.name) for f in dataclasses.fields(batch)}
    kept = {n: v[chosen] for n, v in stored.items() if isinstance(v, torch.Tensor) and len(v) == count and v.dim() < 3}
    for name in ("columns", "per_row"):
        kept[name] = {n: v[chosen] for n, v in stored[name].items()}
    names = [name for name, count in batch.tracks for _ in range(count)]
    kept["tracks"] = tuple(
        (name, len(list(same))) for name, same in groupby([names[row] for row in rows] if names else [])
    )
    for name in ("summary", "label", "counted"):  # per example
        kept[name] = stored[name].view(count, -1)[chosen].flatten()
    places = len(batch.summary) // count
    moved = (torch.arange(len(chosen)) - chosen).repeat_interleave(places) * length
    return batch.replace(**kept | {"summary": kept["summary"] + moved})
