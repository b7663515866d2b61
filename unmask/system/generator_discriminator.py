"""A generator fills in hidden tokens, and a discriminator reads the result: the system of ELECTRA."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask import chance, curves
from unmask.axes import Backbone, Curve, Hide, Objective, Part
from unmask.backbone import Transformer
from unmask.batch import Batch, Hidden, Loss, Vocabulary
from unmask.errors import require
from unmask.predict import Tokens
from unmask.recipe import Recipe
from unmask.system.cost import heads_flops
from unmask.system.single import SystemModule, compile_forward, first_seed, heads, pattern_of

GENERATOR = "tokens"  # the name of the generator's loss
BALANCE = "balance"  # the name of the loss term that limits learned loss weights
# settings that both networks share
READS = ("embedding", "length", "segments", "tasks", "positions", "biases", "components")
SMALLER = 4  # the default generator is this many times smaller than the discriminator
PAPER_WEIGHT = 50.0  # the paper's weight of the discriminator's losses; learned weights start from it


@dataclass(frozen=True)
class GeneratorDiscriminator(Part):
    """A small network that fills in hidden tokens, and a larger network that reads the result and is served."""

    backbone: Backbone = field(default_factory=Transformer)  # the discriminator, which is adapted and served
    generator: Backbone | None = None  # none: the backbone with a quarter of its width, heads and feed-forward width
    fill: Tokens = field(default_factory=Tokens)  # how the generator predicts
    shared: bool = True  # both networks share their embeddings
    learned: bool = False  # the loss weights are learned, by uncertainty; otherwise the schedule gives them
    # the learning rate of each network, as a share of optimise.rate; shared embeddings have the rate of the generator
    generator_rate: float | Curve = 1.0
    discriminator_rate: float | Curve = 1.0
    temperature: float | Curve = 1.0  # scores are divided by it before a token is drawn; below 1: more likely tokens

    def __post_init__(self) -> None:
        for name, network in (("backbone", self.backbone), ("generator", self.generator)):
            require(
                network is None or "any width" in network.gives,
                (
                    "system.{name}={network_kind} has embeddings that are as wide as its layers, but generator and "
                    "discriminator need embeddings of the same width and layers of different widths: set "
                    "system.{name}=Transformer"
                ),
                name=name,
                network_kind=type(network).__name__,
            )
        for name in ("generator_rate", "discriminator_rate"):
            require(
                curves.least(getattr(self, name)) >= 0,
                "system.{name} must be 0 or more, got {value}: write 0.3 for 30% of optimise.rate",
                name=name,
                value=getattr(self, name),
            )
        require(
            curves.least(self.temperature) > 0,
            "system.temperature must be over 0 at every step, got {temperature}: 1 draws with the probabilities themselves",
            temperature=self.temperature,
        )
        if self.generator is None:
            return
        require(
            self.generator.width <= self.backbone.width,
            (
                "a generator may not be wider than its discriminator, got {width} and {width_2}: lower "
                "system.generator.width"
            ),
            width=self.generator.width,
            width_2=self.backbone.width,
        )
        usual = type(self.generator)()
        for name in _read_alike(self.generator, self.backbone):
            value = getattr(self.generator, name)
            require(
                value in (getattr(usual, name), getattr(self.backbone, name)),
                (
                    "system.generator.{name}={value} has no effect, because a generator takes this value from its "
                    "discriminator: set system.backbone.{name}"
                ),
                name=name,
                value=value,
            )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"original"})

    @property
    def networks(self) -> dict[str, Backbone]:
        return {"backbone": self.backbone, "generator": generator_of(self)}

    @property
    def losses(self) -> tuple[str, ...]:
        return (GENERATOR, BALANCE) if self.learned else (GENERATOR,)

    @property
    def rates(self) -> dict[str, float | Curve]:
        return {"generator": self.generator_rate, "discriminator": self.discriminator_rate}

    @property
    def gentler(self) -> tuple[str, ...]:
        now = curves.most(self.discriminator_rate)
        later = f"After(share=0.2, value={now:g}, rise=0.1)"
        return (f"system.discriminator_rate={0.3 * now:g}", f"system.discriminator_rate={later}")

    def asks(self, predict: dict[str, Objective]) -> dict[str, dict[str, Objective]]:
        return {"generator": {GENERATOR: self.fill}, "discriminator": predict}

    def build(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> GeneratorDiscriminatorModule:
        """Both networks with random initial weights, which depend only on the seed."""
        with torch.random.fork_rng():
            chance.seed_torch(first_seed(seed))
            return GeneratorDiscriminatorModule(self, recipe, vocabulary, seed)

    def flops(self, recipe: Recipe, vocabulary: int, length: int, share: float) -> float:
        """Floating-point operations per token of one forward pass."""
        generator, pattern = generator_of(self), pattern_of(recipe)
        guess = self.fill.flops(generator.width, generator.embedding or generator.width, vocabulary, share)
        networks = self.backbone.flops(length, pattern) + generator.flops(length, pattern)
        return networks + guess + heads_flops(recipe, vocabulary, share)


def generator_of(spec: GeneratorDiscriminator) -> Any:
    """The generator as it is built: it takes its inputs and the width of its embeddings from the discriminator."""
    backbone: Any = spec.backbone
    small = {name: max(1, getattr(backbone, name) // SMALLER) for name in ("width", "heads", "feedforward")}
    generator: Any = replace(backbone, **small) if spec.generator is None else spec.generator
    reads = {name: getattr(backbone, name) for name in _read_alike(generator, backbone)}
    return replace(
        generator, **reads | ({"embedding": backbone.embedding or backbone.width} if "embedding" in reads else {})
    )


def _read_alike(generator: Any, backbone: Any) -> list[str]:
    """The settings in READS that both networks have."""
    names = {field.name for field in fields(generator)} & {field.name for field in fields(backbone)}
    return [name for name in READS if name in names]


class GeneratorDiscriminatorModule(SystemModule):
    """One step: hide tokens, let the generator predict them, insert a sample, run the discriminator on the result."""

    def __init__(self, spec: GeneratorDiscriminator, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__(recipe, vocabulary, seed)
        require(
            not spec.learned or not any(stage.weights for stage in recipe.schedule),
            "system.learned=true learns the weights of the losses, but the schedule gives weights too: use --variant learned, "
            "or set schedule.0.weights={}",
        )
        pattern, generator = pattern_of(recipe), generator_of(spec)
        self.backbone = spec.backbone.build(vocabulary.size, pattern)
        self.generator = generator.build(vocabulary.size, pattern, self.backbone.embed if spec.shared else None)
        self.fill = spec.fill.build(generator.width, self.generator.embed.token.weight, generator.fresh)
        self.predict = heads(recipe, spec.backbone, self.backbone.embed.token.weight)
        starts = [0.0] + [-math.log(PAPER_WEIGHT)] * len(self.predict)
        self.guess, self.temperature = guess, spec.temperature
        # logarithms of variances, the generator's first
        self.balance = nn.Parameter(torch.tensor(starts)) if spec.learned else None
        self.rates = self._rates(spec)

    def _rates(self, spec: GeneratorDiscriminator) -> dict[str, float | Curve]:
        """The learning rate of each parameter, as a share. Learned loss weights belong to no network: their share is 1."""
        guessing = {id(p) for module in (self.generator, self.fill) for p in module.parameters()}
        judging = {id(p) for module in (self.backbone, self.predict) for p in module.parameters()}
        found = {name: (id(p) in guessing, id(p) in judging) for name, p in self.named_parameters()}
        return {
            name: spec.generator_rate if mine else spec.discriminator_rate
            for name, (mine, other) in found.items()
            if mine or other
        }

    def compile_parts(self, on: bool = True) -> None:
        """Compile the parts that take most of the time. `on=False`: use the parts without compilation again."""
        compile_forward([self.backbone, self.generator], self.predict, on)
        self.backbone.compiled = self.generator.compiled = on
        self.guess = torch.compile(guess, dynamic=False) if on else guess

    def hide(self, batch: Batch, hide: Hide | tuple[Hide, ...] | None = None) -> tuple[Batch, dict[str, Tensor]]:
        """The batch with tokens hidden and ranked, and the number of predictions of each objective."""
        batch = self.hidden(batch, hide)
        counts = {GENERATOR: self.fill.count(batch)} | {
            name: head.count(batch) for name, head in self.heads(batch).items()
        }
        one = {BALANCE: torch.ones((), device=batch.ids.device)} if self.balance is not None else {}
        return batch, counts | one

    def step(self, batch: Batch, memory: Any = None) -> tuple[dict[str, Loss], Any]:
        """The losses of a batch, and the discriminator's memory for the next batch."""
        guessed, _ = self.generator(batch)
        temperature = curves.at(self.temperature, batch.progress)
        loss, drawn = self.guess(self.fill, guessed, batch, self.seed, temperature)
        judged = filled(batch, drawn)
        hidden, memory = self.backbone(judged, memory)
        losses = {GENERATOR: loss} | {name: head(hidden, judged) for name, head in self.heads(judged).items()}
        return (self._balanced(losses) if self.balance is not None else losses), memory

    def _balanced(self, losses: dict[str, Loss]) -> dict[str, Loss]:
        """The losses with learned weights: each is divided by a learned variance (Kendall et al. 2018).

        Half the sum of the log variances is added as a loss, so that the variances do not grow without limit."""
        assert self.balance is not None
        scales = (-self.balance).exp().unbind()
        found = {name: replace(loss, scale=s) for (name, loss), s in zip(losses.items(), scales, strict=True)}
        return found | {BALANCE: Loss(self.balance.sum() / 2, torch.ones_like(self.balance[0]))}


def guess(
    fill: Any, guessed: Hidden, batch: Batch, seed: int, temperature: float | Tensor = 1.0
) -> tuple[Loss, Tensor]:
    """The generator's loss, and for each target a token drawn from its distribution."""
    scores = fill.at_targets(guessed, batch)  # N V
    return fill.loss(scores, batch), sample(scores.detach(), batch, seed, temperature)


def sample(scores: Tensor, batch: Batch, seed: int, temperature: float | Tensor = 1.0) -> Tensor:
    """N, a token for each target, drawn from the softmax of its scores. The draw depends on row, visit and place."""
    where, length = batch.targets[GENERATOR].where, batch.shape[1]
    address = (batch.row[where // length], batch.visit[where // length])
    drawn = chance.uniform(where % length, seed, *address, chance.purpose("generator"))
    mass = (scores.float() / temperature).softmax(-1).cumsum(-1)
    found = torch.searchsorted(mass, (drawn * mass[:, -1]).to(mass.dtype)[:, None], right=True)[:, 0]
    return found.clamp(max=scores.shape[1] - 1)


def filled(batch: Batch, drawn: Tensor) -> Batch:
    """The batch that the discriminator reads: the drawn tokens at the targets, and the originals in `original`."""
    targets = batch.targets[GENERATOR]
    ids = batch.ids.flatten()
    # an unused place may point to a token that another place uses, so it writes after the end
    where = torch.where(targets.weight > 0, targets.where, len(ids))

    def put(new: Tensor) -> Tensor:
        return F.pad(ids, (0, 1)).scatter(0, where, new)[:-1].view(batch.shape)

    return batch.replace(ids=put(drawn), original=put(targets.ids))
