"""The smallest objects that tests are made of."""

from __future__ import annotations

import torch

from unmask.axes import Hide
from unmask.batch import Batch, Vocabulary
from unmask.hide import Keep, Mask, Masked, Runs, Shuffle
from unmask.recipe import Recipe
from unmask.settings import flat, override


def vocabulary(size: int = 200) -> Vocabulary:
    return Vocabulary(size=size, pad=0, special=(0, 1, 2, 3, 4), mask=4, end=3)


def random_batch(rows: int, length: int, examples: int = 1, seed: int = 0, size: int = 200, padding: int = 3) -> Batch:
    """Rows of `examples` examples each, cut at random, with [CLS] (2) and [SEP] (3), and some padding at the end."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, size, (rows, length), generator=random)
    word = torch.zeros(rows, length, dtype=torch.long)
    example, position, segment = torch.full_like(word, -1), torch.zeros_like(word), torch.zeros_like(word)
    summary, counted = torch.zeros(rows, examples, dtype=torch.long), torch.ones(rows, examples)
    for row in range(rows):
        end = length - padding
        cuts = torch.randperm(end // 6 - 1, generator=random)[: examples - 1].sort().values
        edges = [0, *((cuts + 1) * 6).tolist(), end]
        for number, (a, b) in enumerate(zip(edges, edges[1:], strict=False)):
            ids[row, a], ids[row, b - 1] = 2, 3
            example[row, a:b], position[row, a:b] = number, torch.arange(b - a)
            segment[row, (a + b) // 2 : b] = 1
            summary[row, number] = row * length + a
    joined = torch.rand(rows, length, generator=random) < 0.4  # a token that continues the word before it
    special = (ids < 5) | (example < 0)
    ids[example < 0] = 0
    starts = ~special & (~joined | torch.roll(special, 1, 1))
    word = torch.where(special, -1, starts.cumsum(1) - 1)
    return Batch(
        ids=ids, columns={"word": word, "sentence": torch.where(special, -1, 0)}, example=example, segment=segment, position=position,
        row=torch.arange(rows) + 1000, visit=torch.zeros(rows, dtype=torch.long), summary=summary.flatten(),
        label=torch.randint(0, 2, (rows * examples,), generator=random), counted=counted.flatten(),
    )  # fmt: skip


def spelled(batch: Batch, size: int = 5) -> Batch:
    """The batch with random words of one to five bytes; special tokens and padding have none."""
    random = torch.Generator().manual_seed(1)
    bytes_ = torch.randint(0, 250, (*batch.shape, size), generator=random)
    length = torch.randint(1, size + 1, batch.shape, generator=random) * (batch.ids >= 5)
    spelling = torch.where(torch.arange(size) < length[..., None], bytes_, 255)
    return batch.replace(columns=batch.columns | {"spelling": spelling})


def masking(
    *, mask: float = 0.8, random: float = 0.1, draw: str = "token", random_from: str = "vocabulary", **rule
) -> Masked:
    """A rule that puts [MASK], random tokens or the tokens themselves in place of what it chooses."""
    kept = mask == random == 0
    return Masked(
        replace=Keep() if kept else Mask(mask=mask, random=random, draw=draw, random_from=random_from), **rule
    )


def shuffled(budget: float, size: int = 3, copies: int | None = None) -> Masked:
    """A rule that shuffles runs of tokens."""
    return Masked(units=Runs(size=size), budget=budget, replace=Shuffle(), copies=copies)


def hides(recipe: Recipe) -> list[Hide | tuple[Hide, ...]]:
    """What each stage of a recipe hides."""
    return [stage.hide or recipe.hide for stage in recipe.schedule]


def without_dropout(recipe: Recipe) -> Recipe:
    """The recipe with every dropout set to 0."""
    return override(recipe, [f"{name}=0.0" for name in flat(recipe) if name.endswith("dropout")])
