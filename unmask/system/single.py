"""One backbone and its objectives: the system of every recipe that trains a single network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unmask import chance
from unmask.backbone import Transformer
from unmask.batch import Batch, Hidden, Loss, Vocabulary
from unmask.errors import require
from unmask.predict import Label, Tokens
from unmask.recipe import Recipe

SENTENCE = "sentence"  # the name of the objective that follows from a recipe's `arrange`


@dataclass(frozen=True)
class Single:
    """One network."""

    backbone: Transformer = field(default_factory=Transformer)  # the network that is trained, adapted and served

    def build(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> SingleModule:
        """The network with fresh weights, a function of the seed alone."""
        with torch.random.fork_rng():
            torch.manual_seed(int(chance.generator(seed, chance.purpose("initial weights")).integers(2**62)))
            return SingleModule(self, recipe, vocabulary, seed)


class SingleModule(nn.Module):
    """What the training loop knows: `prepare` hides and counts, `step` gives the losses, `keep` is what is served."""

    def __init__(self, spec: Single, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__()
        check(recipe, vocabulary)
        self.hide, self.see, self.vocabulary, self.seed = recipe.hide, recipe.see, vocabulary, seed
        self.backbone = spec.backbone.build(vocabulary.size, recipe.see.pattern)  # type: ignore[attr-defined]
        embedding = self.backbone.embed.token.weight
        width, deviation = spec.backbone.width, spec.backbone.deviation
        self.predict = nn.ModuleDict()
        for name, part in objectives(recipe).items():
            built = (
                part.build(width, embedding, deviation) if isinstance(part, Tokens) else part.build(width, deviation)
            )
            self.predict[name] = built

    @property
    def keep(self) -> nn.Module:
        return self.backbone

    def prepare(self, batch: Batch) -> tuple[Batch, dict[str, Tensor]]:
        """Hide, say who sees whom, and count what each objective will predict."""
        batch = self.hide.apply(batch, self.vocabulary, self.seed)  # type: ignore[attr-defined]
        batch = batch.replace(rank=self.see.rank(batch))  # type: ignore[attr-defined]
        return batch, {name: head.count(batch) for name, head in self.predict.items()}  # type: ignore[operator]

    def step(self, batch: Batch, state: Any = None) -> tuple[dict[str, Loss], Any]:
        hidden, state = self.backbone(batch, state)
        return {name: head(hidden, batch) for name, head in self.predict.items()}, state

    def look(self, batch: Batch) -> Hidden:
        """The vectors of a batch as it is, nothing hidden: for inference."""
        return self.backbone(batch.replace(rank=self.see.rank(batch)))[0]  # type: ignore[attr-defined]


def objectives(recipe: Recipe) -> dict[str, Any]:
    """What is predicted: the recipe's own objectives, and the sentence task that its `arrange` brings."""
    classes = recipe.arrange.classes  # type: ignore[attr-defined]
    return recipe.predict | ({SENTENCE: Label(classes=classes)} if classes else {})


def check(recipe: Recipe, vocabulary: Vocabulary) -> None:
    """Refuse a recipe whose parts do not fit each other or the tokenizer."""
    require(
        vocabulary.mask is not None or not recipe.hide.needs_mask,  # type: ignore[attr-defined]
        f"{recipe.name} hides tokens behind [MASK], and the tokenizer has no mask token: "
        "train one with 'unmask tokenizer', or set hide.mask=0",
    )
    longest = max(stage.length for stage in recipe.schedule)
    limit = recipe.system.backbone.length  # type: ignore[attr-defined]
    require(
        longest <= limit,
        f"rows of {longest} tokens do not fit a backbone of length {limit}: lower schedule.*.length or raise "
        "system.backbone.length",
    )
    known = objectives(recipe)
    for name in (name for stage in recipe.schedule for name in stage.weights):
        require(
            name in known, f"the schedule weighs a loss {name!r} that is not predicted: known are {', '.join(known)}"
        )


def cost(recipe: Recipe, vocabulary: int) -> dict[str, float]:
    """Parameters, and training operations per token over the whole schedule; nothing is allocated."""
    words = Vocabulary(size=vocabulary, pad=0, special=(), mask=0)
    with torch.device("meta"):
        system = recipe.system.build(recipe, words, 0)  # type: ignore[attr-defined]
    flops = sum(stage.share * flops_per_token(recipe, vocabulary, stage.length) for stage in recipe.schedule)
    return {"parameters": sum(p.numel() for p in system.parameters()), "flops_per_token": flops}


def flops_per_token(recipe: Recipe, vocabulary: int, length: int) -> float:
    """Training operations per token: three forward passes' worth, predictions counted where they are made."""
    backbone: Transformer = recipe.system.backbone  # type: ignore[attr-defined]
    share = getattr(recipe.hide, "budget", 1.0)
    heads = sum(p.flops(backbone.width, vocabulary) * share for p in recipe.predict.values() if isinstance(p, Tokens))
    return 3 * (backbone.flops(length) + heads)
