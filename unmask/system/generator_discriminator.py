"""A generator fills what is hidden, a discriminator judges the result: the system of ELECTRA."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask import chance
from unmask.backbone import Transformer
from unmask.batch import Batch, Hidden, Loss, Vocabulary
from unmask.errors import require
from unmask.predict import Tokens
from unmask.recipe import Recipe
from unmask.system.check import check, heads_flops, objectives
from unmask.system.single import compile_forward, first_seed, heads, made_ready

GENERATOR = "tokens"  # the name of the generator's loss
BALANCE = "balance"  # the name of the term that keeps learned weights in bounds
READS = ("embedding", "length", "segments", "positions")  # what the generator has as the discriminator has it
PAPER_WEIGHT = 50.0  # of every loss of the discriminator, in the paper; learned weights start from it


@dataclass(frozen=True)
class GeneratorDiscriminator:
    """A small network that fills what is hidden, and the network that is kept, which reads what came of it."""

    backbone: Transformer = field(default_factory=Transformer)  # the discriminator: adapted and served
    generator: Transformer = field(default_factory=Transformer)  # it reads what the discriminator reads
    fill: Tokens = field(default_factory=Tokens)  # how the generator predicts
    shared: bool = True  # both networks have the same embeddings
    learned: bool = False  # the weights of the losses are learned, by uncertainty; otherwise as the schedule says

    def __post_init__(self) -> None:
        require(
            self.generator.width <= self.backbone.width,
            f"a generator may not be wider than its discriminator, got {self.generator.width} and {self.backbone.width}: "
            "lower system.generator.width",
        )
        for name in READS:
            value = getattr(self.generator, name)
            require(
                value in (getattr(Transformer, name), getattr(self.backbone, name)),
                f"system.generator.{name}={value} has no effect: a generator reads what its discriminator reads; set "
                f"system.backbone.{name}",
            )

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of losses that the system brings besides the objectives."""
        return (GENERATOR, BALANCE) if self.learned else (GENERATOR,)

    def build(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> GeneratorDiscriminatorModule:
        """Both networks with fresh weights, a function of the seed alone."""
        with torch.random.fork_rng():
            torch.manual_seed(first_seed(seed))
            return GeneratorDiscriminatorModule(self, recipe, vocabulary, seed)

    def flops(self, recipe: Recipe, vocabulary: int, length: int) -> float:
        """Floating-point operations per token of one forward pass."""
        generator = generator_of(self)
        guess = self.fill.flops(generator.width, generator.embedding, vocabulary, recipe.hide.share)  # type: ignore[attr-defined, arg-type]
        pattern = recipe.see.pattern  # type: ignore[attr-defined]
        networks = self.backbone.flops(length, pattern) + generator.flops(length, pattern)
        return networks + guess + heads_flops(recipe, vocabulary)


def generator_of(spec: GeneratorDiscriminator) -> Transformer:
    """The generator as it is built: what it reads, and how wide its embeddings are, is as of the discriminator."""
    reads = {name: getattr(spec.backbone, name) for name in READS}
    return replace(spec.generator, **reads | {"embedding": spec.backbone.embedding or spec.backbone.width})


class GeneratorDiscriminatorModule(nn.Module):
    """One step: hide, let the generator guess, put a sample of its guesses in place, let the discriminator judge."""

    def __init__(self, spec: GeneratorDiscriminator, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__()
        check(recipe, vocabulary)
        taken = set(spec.losses) & set(objectives(recipe))
        require(
            not taken,
            f"{recipe.name} predicts {', '.join(sorted(taken))}, which is the name of a loss that the generator brings: set "
            "system=Single",
        )
        require(
            not spec.learned or not any(stage.weights for stage in recipe.schedule),
            "system.learned=true learns the weights of the losses, and the schedule gives them: take --variant learned, or "
            "set schedule.0.weights={}",
        )
        self.vocabulary, self.seed = vocabulary, seed
        self.hide: Any = recipe.hide
        self.see: Any = recipe.see
        pattern = recipe.see.pattern  # type: ignore[attr-defined]
        self.backbone = spec.backbone.build(vocabulary.size, pattern)
        generator = generator_of(spec)
        self.generator = generator.build(vocabulary.size, pattern, self.backbone.embed if spec.shared else None)
        self.fill = spec.fill.build(generator.width, self.generator.embed.token.weight, generator.fresh)
        self.predict = heads(recipe, spec.backbone, self.backbone.embed.token.weight)
        starts = [0.0] + [-math.log(PAPER_WEIGHT)] * len(self.predict)
        self.guess = guess
        self.balance = (
            nn.Parameter(torch.tensor(starts)) if spec.learned else None
        )  # log variances, the generator's first

    @property
    def keep(self) -> nn.Module:
        return self.backbone

    def compile_parts(self, on: bool = True) -> None:
        """Compile what takes the time, part by part; off: compute plainly again."""
        compile_forward([self.backbone, self.generator], self.predict, on)
        self.backbone.compiled = self.generator.compiled = on
        self.guess = torch.compile(guess, dynamic=False) if on else guess

    def prepare(self, batch: Batch, hide: Any = None) -> tuple[Batch, dict[str, Tensor]]:
        """Hide, say who sees whom, and count what each objective will predict. `hide`: if not what the recipe hides."""
        batch = made_ready(self, batch, hide)
        counts = {GENERATOR: self.fill.count(batch)} | {name: head.count(batch) for name, head in self.predict.items()}  # type: ignore[operator]
        one = {BALANCE: torch.ones((), device=batch.ids.device)} if self.balance is not None else {}
        return batch, counts | one

    def step(self, batch: Batch, state: Any = None) -> tuple[dict[str, Loss], Any]:
        guessed, _ = self.generator(batch)
        loss, drawn = self.guess(self.fill, guessed, batch, self.seed)
        judged = filled(batch, drawn)
        hidden, state = self.backbone(judged, state)
        losses = {GENERATOR: loss} | {name: head(hidden, judged) for name, head in self.predict.items()}
        return (self._balanced(losses) if self.balance is not None else losses), state

    def look(self, batch: Batch) -> Hidden:
        """The discriminator's vectors of a batch as it is: for inference."""
        seen = batch if batch.rank is not None else self.see.apply(batch)
        return self.backbone(seen)[0]

    def read_on(self, batch: Batch, state: Any) -> tuple[Hidden, Any]:
        """The vectors of tokens that go on from a state of `backbone.cache`, and the state after them; none: from nothing."""
        found: tuple[Hidden, Any] = self.backbone(self.see.apply(batch), state)
        return found

    def _balanced(self, losses: dict[str, Loss]) -> dict[str, Loss]:
        """Each loss over its own variance, which is learned (Kendall et al. 2018); half its logarithm is the price."""
        assert self.balance is not None
        scales = (-self.balance).exp().unbind()
        found = {name: replace(loss, scale=s) for (name, loss), s in zip(losses.items(), scales, strict=True)}
        return found | {BALANCE: Loss(self.balance.sum() / 2, torch.ones_like(self.balance[0]))}


def guess(fill: Any, guessed: Hidden, batch: Batch, seed: int) -> tuple[Loss, Tensor]:
    """The generator's loss, and for each target a token drawn by its probability."""
    scores = fill.at_targets(guessed, batch)  # N V
    return fill.loss(scores, batch), sample(scores.detach(), batch, seed)


def sample(scores: Tensor, batch: Batch, seed: int) -> Tensor:
    """N, a token for each target, drawn by its probability: a function of the row, the visit and the place."""
    assert batch.targets is not None, "nothing was hidden"
    where, length = batch.targets.where, batch.shape[1]
    address = (batch.row[where // length], batch.visit[where // length])
    drawn = chance.uniform(where % length, seed, *address, chance.purpose("generator"))
    mass = scores.float().softmax(-1).cumsum(-1)
    found = torch.searchsorted(mass, (drawn * mass[:, -1]).to(mass.dtype)[:, None], right=True)[:, 0]
    return found.clamp(max=scores.shape[1] - 1)


def filled(batch: Batch, drawn: Tensor) -> Batch:
    """What the discriminator reads: the drawn tokens at the targets; and beside it, what stood there."""
    targets = batch.targets
    assert targets is not None, "nothing was hidden"
    ids = batch.ids.flatten()
    # an unused place may name a token that another place uses: it writes behind the end
    where = torch.where(targets.weight > 0, targets.where, len(ids))

    def put(new: Tensor) -> Tensor:
        return F.pad(ids, (0, 1)).scatter(0, where, new)[:-1].view(batch.shape)

    return batch.replace(ids=put(drawn), original=put(targets.ids))
