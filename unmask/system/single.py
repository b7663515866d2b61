"""One backbone and its objectives: the system of every recipe that trains a single network."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from unmask import chance
from unmask.axes import Backbone, Curve, Hide, Objective, Part, Pattern, needs_of, rules
from unmask.backbone import Transformer
from unmask.batch import Batch, Hidden, Loss, Vocabulary
from unmask.recipe import MAIN, UNLABELLED, Recipe
from unmask.system.cost import heads_flops
from unmask.system.fit import check_fit
from unmask.system.objectives import asked, asked_losses, objectives
from unmask.system.tracks import hide_tracks, tracks_of, view


@dataclass(frozen=True)
class Single(Part):
    """One network."""

    backbone: Backbone = field(default_factory=Transformer)  # the network that is trained, adapted and served

    @property
    def networks(self) -> dict[str, Backbone]:
        return {"backbone": self.backbone}

    @property
    def losses(self) -> tuple[str, ...]:
        return ()

    @property
    def rates(self) -> dict[str, float | Curve]:
        return {"network": 1.0}

    @property
    def gentler(self) -> tuple[str, ...]:
        return ()

    def asks(self, predict: dict[str, Objective]) -> dict[str, dict[str, Objective]]:
        return {"network": predict}

    def build(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> SingleModule:
        """The network with random initial weights, which depend only on the seed."""
        with torch.random.fork_rng():
            chance.seed_torch(first_seed(seed))
            return SingleModule(self, recipe, vocabulary, seed)

    def flops(self, recipe: Recipe, vocabulary: int, length: int, share: float) -> float:
        """Floating-point operations per token of one forward pass."""
        return self.backbone.flops(length, pattern_of(recipe), share) + heads_flops(recipe, vocabulary, share)


class SystemModule(nn.Module):
    """Base class of systems: hiding by tracks, and reading for inference. `keep` is the network that is served."""

    backbone: Any
    predict: nn.ModuleDict
    rates: dict[str, float | Curve]  # the learning rate of each parameter, as a share of the full rate; 1 if not named

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__()
        check_fit(recipe, vocabulary)
        self.vocabulary, self.seed, self.rates = vocabulary, seed, {}
        self.tracks, self.writing = recipe.all_tracks(), recipe.writing
        self.asked = {name: asked(recipe, track) for name, track in self.tracks.items()}
        # the tracks that hide what the recipe hides, and so what a stage hides instead
        self.as_recipe = [MAIN, *(name for name, track in recipe.tracks.items() if track.hide is None)]
        # the tracks in which a batch continues the one before it
        self.remembers = {name for name, track in self.tracks.items() if track.arrange.continuous}
        self.losses_of = {name: asked_losses(recipe, track) for name, track in self.tracks.items()}
        # the losses that are about a whole text, and are computed in a row for each text
        self.whole = {
            n
            for n, part in objectives(recipe).items()
            if part.asked_at == "examples" or "unpacked rows" in needs_of(part)
        }
        # what a way of tuning may set
        self.mix: nn.Module = nn.Identity()  # from the vectors of all layers to those that heads read
        self.still = False  # whether the network stays in evaluation mode, because it never trains
        self.saved: frozenset[str] | None = None  # the names of the tensors that are saved; None: all tensors
        self.features: Callable[[Batch], Hidden | None] | None = None  # vectors that were computed before
        self.students: Any = None  # what learns from batches without labels (`teacher_student`); None: there are none

    @property
    def keep(self) -> nn.Module:
        found: nn.Module = self.backbone
        return found

    def hidden(self, batch: Batch, hide: Hide | tuple[Hide, ...] | None) -> Batch:
        """The batch with tokens hidden and ranked. `hide`: replaces the `hide` of the recipe; None: the recipe's own."""
        tracks = self.tracks
        if hide is not None:
            tracks = tracks | {name: replace(tracks[name], hide=hide) for name in self.as_recipe}
        return hide_tracks(tracks, batch, self.vocabulary, self.seed, self.asked)

    def heads(self, batch: Batch) -> dict[str, Any]:
        """The objectives that this batch is trained on, by name: those of its tracks."""
        asked = {loss for track in tracks_of(self.tracks, batch) for loss in self.losses_of[track]}
        return {name: head for name, head in self.predict.items() if name in asked}

    def continues(self, batch: Batch) -> bool:
        """Whether the rows of a batch continue those of an earlier batch."""
        return self.remembers.issuperset(tracks_of(self.tracks, batch))

    def read(self, batch: Batch) -> Batch:
        """The batch as a finished model reads it. If a decoder writes the whole text, it has rows for the decoder too."""
        for rule in rules(self.tracks[MAIN].hide):
            if {"decoder rows", "from before"} <= rule.gives and "second text" not in rule.gives:
                batch = rule.apply(batch, self.vocabulary, self.seed)
        return view(self.tracks[MAIN], batch)

    def look(self, batch: Batch, track: str | None = None) -> Hidden:
        """The vectors of a batch in which no token is hidden: for inference. `track`: tokens see each other as in this
        track; None: as in the main track."""
        if batch.rank is None:
            batch = view(self.tracks[track or MAIN], batch)
        return self.vectors(batch)[0]

    def alone(self, name: str, head: str) -> Self:
        """The same networks with only this track and its objectives: for one task of several. Nothing is copied. `head`: what
        the objective with the name of the track is called then; "": it has none."""
        found = copy.copy(self)
        kept = {head if loss == name else loss: self.predict[loss] for loss in self.losses_of[name]}
        found.__dict__["_modules"] = self._modules | {"predict": nn.ModuleDict(kept)}
        found.tracks, found.writing = {MAIN: replace(self.tracks[name], share=1.0)}, MAIN
        found.asked, found.losses_of = {MAIN: self.asked[name]}, {MAIN: list(kept)}
        found.whole = {head if loss == name else loss for loss in self.whole}
        found.as_recipe, found.remembers = [MAIN], {MAIN} if name in self.remembers else set()
        return found

    def vectors(self, batch: Batch, memory: Any = None) -> tuple[Hidden, Any]:
        """The vectors that heads read, and the memory for the next batch."""
        known = None if self.features is None else self.features(batch)
        hidden, memory = self.backbone(batch, memory) if known is None else (known, None)
        return self.mix(hidden), memory

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.still:
            self.backbone.eval()
        return self

    def read_source(self, batch: Batch, length: int) -> Any:
        """The state of a decoder that has read a source, one example per row, and has space to write `length` tokens."""
        return self.backbone.read(view(self.tracks[self.writing], batch), length)

    def read_on(self, batch: Batch, state: Any) -> tuple[Hidden, Any]:
        """The vectors of tokens that continue from a state, and the state after them. `state`: from `backbone.cache`, or
        None: there are no earlier tokens."""
        return self.vectors(view(self.tracks[self.writing], batch), state)


class SingleModule(SystemModule):
    """One step: hide tokens, run the network, compute every objective."""

    def __init__(self, spec: Single, recipe: Recipe, vocabulary: Vocabulary, seed: int) -> None:
        super().__init__(recipe, vocabulary, seed)
        self.backbone = spec.backbone.build(vocabulary.size, pattern_of(recipe))
        self.predict = heads(recipe, spec.backbone, self.backbone.embed.token.weight)

    def compile_parts(self, on: bool = True) -> None:
        """Compile the parts that take most of the time. `on=False`: use the parts without compilation again."""
        compile_forward([self.backbone], self.predict, on)
        self.backbone.compiled = on

    def hide(self, batch: Batch, hide: Hide | tuple[Hide, ...] | None = None) -> tuple[Batch, dict[str, Tensor]]:
        """The batch with tokens hidden and ranked, and the number of predictions of each objective."""
        if _unlabelled(batch):
            return batch, self.students.counts(batch)
        batch = self.hidden(batch, hide)
        apart = batch if batch.apart is None else batch.apart.rows
        return batch, {n: head.count(apart if n in self.whole else batch) for n, head in self.heads(batch).items()}

    def step(self, batch: Batch, memory: Any = None) -> tuple[dict[str, Loss], Any]:
        """The losses of a batch, and the memory for the next batch."""
        if _unlabelled(batch):
            return self.students(self, batch), None
        if memory is None and self.continues(batch):
            memory = self.backbone.first_state(batch.shape[0])
        hidden, memory = self.vectors(batch, memory)
        whole = hidden.apart(batch)
        losses = {
            name: head(*(whole if name in self.whole else (hidden, batch))) for name, head in self.heads(batch).items()
        }
        return losses, memory


def _unlabelled(batch: Batch) -> bool:
    """Whether the batch holds texts without labels. All its rows do, or none does."""
    return any(name == UNLABELLED for name, _ in batch.tracks)


def pattern_of(recipe: Recipe) -> Pattern:
    """The attention pattern that all tracks have; "ranked" if they differ."""
    patterns = {track.see.pattern for track in recipe.all_tracks().values()}
    return patterns.pop() if len(patterns) == 1 else "ranked"


def first_seed(seed: int) -> int:
    """The seed of the initial weights."""
    return int(chance.generator(seed, chance.purpose("initial weights")).integers(2**62))


def heads(recipe: Recipe, backbone: Backbone, embedding: Tensor) -> nn.ModuleDict:
    """All objectives of a recipe, built for a backbone."""
    parts = objectives(recipe).items()
    return nn.ModuleDict({name: part.build(backbone.width, embedding, backbone.fresh) for name, part in parts})


def draw_head(system: Any, recipe: Recipe, name: str, seed: int) -> None:
    """Draw the random weights of one objective again; they depend only on the seed. "": there is none to draw."""
    if name:
        spec: Any = recipe.system
        with torch.random.fork_rng():
            torch.manual_seed(first_seed(seed))
            part = objectives(recipe)[name]
            system.predict[name] = part.build(
                spec.backbone.width, system.backbone.embed.token.weight, spec.backbone.fresh
            )


def compile_forward(networks: list[Any], heads: nn.ModuleDict, on: bool) -> None:
    """Compile each module of the networks and heads, or undo it. To compile a whole network at once would take minutes."""
    modules = [*(module for network in networks for module in network.parts), *heads.values()]
    methods = [(module, vars(type(module)).get("heavy", "forward")) for module in modules]
    for module, name in methods:
        vars(module).pop(name, None)
        if on:
            setattr(module, name, torch.compile(getattr(module, name), dynamic=False))
