"""One backbone and its objectives: the system of every recipe that trains a single network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unmask import chance
from unmask.backbone import Transformer, TransformerXL
from unmask.batch import Batch, Hidden, Loss, Vocabulary
from unmask.recipe import Recipe
from unmask.system.check import check, heads_flops, objectives


@dataclass(frozen=True)
class Single:
    """One network."""

    backbone: Transformer | TransformerXL = field(default_factory=Transformer)  # trained, adapted and served

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of losses that the system brings besides the objectives."""
        return ()

    def build(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> SingleModule:
        """The network with fresh weights, a function of the seed alone."""
        with torch.random.fork_rng():
            torch.manual_seed(first_seed(seed))
            return SingleModule(self, recipe, vocabulary, seed)

    def flops(self, recipe: Recipe, vocabulary: int, length: int) -> float:
        """Floating-point operations per token of one forward pass."""
        pattern, share = recipe.see.pattern, recipe.hide.share  # type: ignore[attr-defined]
        return self.backbone.flops(length, pattern, share) + heads_flops(recipe, vocabulary)


class SingleModule(nn.Module):
    """What the training loop knows: `prepare` hides and counts, `step` gives the losses, `keep` is what is served."""

    def __init__(self, spec: Single, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__()
        check(recipe, vocabulary)
        self.vocabulary, self.seed = vocabulary, seed
        self.hide: Any = recipe.hide
        self.see: Any = recipe.see
        self.remembers: bool = recipe.arrange.continuous  # type: ignore[attr-defined]  # does a batch go on with the one before?
        self.backbone = spec.backbone.build(vocabulary.size, recipe.see.pattern)  # type: ignore[attr-defined]
        self.predict = heads(recipe, spec.backbone, self.backbone.embed.token.weight)

    @property
    def keep(self) -> nn.Module:
        return self.backbone

    def compile_parts(self, on: bool = True) -> None:
        """Compile what takes the time, part by part; off: compute plainly again."""
        compile_forward([self.backbone], self.predict, on)
        self.backbone.compiled = on

    def prepare(self, batch: Batch, hide: Any = None) -> tuple[Batch, dict[str, Tensor]]:
        """Hide, say who sees whom, and count what each objective will predict. `hide`: if not what the recipe hides."""
        batch = made_ready(self, batch, hide)
        return batch, {name: head.count(batch) for name, head in self.predict.items()}  # type: ignore[operator]

    def step(self, batch: Batch, state: Any = None) -> tuple[dict[str, Loss], Any]:
        if state is None and self.remembers:
            state = self.backbone.first_state(batch.shape[0])
        hidden, state = self.backbone(batch, state)
        return {name: head(hidden, batch) for name, head in self.predict.items()}, state

    def look(self, batch: Batch) -> Hidden:
        """The vectors of a batch as it is, nothing hidden: for inference."""
        seen = batch if batch.rank is not None else self.see.apply(batch)
        return self.backbone(seen)[0]

    def read_on(self, batch: Batch, state: Any) -> tuple[Hidden, Any]:
        """The vectors of tokens that go on from a state of `backbone.cache`, and the state after them; none: from nothing."""
        found: tuple[Hidden, Any] = self.backbone(self.see.apply(batch), state)
        return found


def made_ready(system: Any, batch: Batch, hide: Any) -> Batch:
    """The batch with something hidden and every token told whom it sees. `hide`: if not what the recipe hides."""
    batch = system.see.draw(batch, system.seed)
    batch = (hide or system.hide).apply(batch, system.vocabulary, system.seed)
    seen: Batch = system.see.apply(batch)
    return seen


def first_seed(seed: int) -> int:
    """The seed of the initial weights."""
    return int(chance.generator(seed, chance.purpose("initial weights")).integers(2**62))


def heads(recipe: Recipe, backbone: Transformer | TransformerXL, embedding: Tensor) -> nn.ModuleDict:
    """All objectives of a recipe, built for a backbone."""
    parts = objectives(recipe).items()
    return nn.ModuleDict({name: part.build(backbone.width, embedding, backbone.fresh) for name, part in parts})


def compile_forward(networks: list[Any], heads: nn.ModuleDict, on: bool) -> None:
    """Compile the modules of networks and of heads, or undo it. A whole network would take minutes to compile."""
    methods = [(module, "forward") for network in networks for module in network.parts]
    methods += [(head, head.heavy) for head in list[Any](heads.values())]
    for module, name in methods:
        vars(module).pop(name, None)
        if on:
            setattr(module, name, torch.compile(getattr(module, name), dynamic=False))
