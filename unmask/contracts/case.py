"""Case: one recipe with short rows, a tokenizer and small data: everything that a contract needs."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from unmask.axes import Hide, gives_of, needs_of, parts_in, rules
from unmask.batch import Batch, Vocabulary
from unmask.contracts.small_data import VOCABULARY, SmallData
from unmask.pretraining.components import put_components, read_components, with_components
from unmask.pretraining.entity_vectors import put_entities, with_entities
from unmask.pretraining.labelled import with_tasks
from unmask.pretraining.mixture import Mixture, needed_columns
from unmask.recipe import FullTrack, Recipe, Stage
from unmask.settings import flat, override
from unmask.system import predictions, token_biases
from unmask.text import Tokenizer
from unmask.vectors.components import ComponentTable

LENGTH = 32  # tokens in a row of the first stage; a later stage has a multiple of it
LENGTHS = 3  # the largest multiple
ROWS = 8  # in a step
MEMORY = 40  # tokens in the memory of a network: more than one row, fewer than two
SEED = 0


@dataclass(frozen=True)
class StageTrack:
    """A track in a stage: one way to hide and see rows."""

    track: str
    stage: Stage
    choices: FullTrack

    def __str__(self) -> str:
        return f"the track {self.track!r}"


@dataclass(frozen=True)
class Case:
    """A recipe with short rows, and the small data that it reads."""

    recipe: Recipe
    small: SmallData = field(compare=False)

    @property
    def tokenizer(self) -> Tokenizer:
        return self._prepared[0]

    @property
    def data(self) -> Path:
        """The folder of the prepared data."""
        return self._prepared[1]

    @property
    def folder(self) -> Path:
        """A folder for runs."""
        return self.small.folder / "runs"

    @cached_property
    def _prepared(self) -> tuple[Tokenizer, Path]:
        columns = frozenset(needed_columns(self.recipe))
        return self.small.of(self.recipe.tokenizer, columns, connected="connectives" in self.gives)

    @cached_property
    def gives(self) -> frozenset[str]:
        """All facts that the parts of the recipe give."""
        tracks = [way.choices for way in self.ways]
        parts = [(track.arrange, track.hide, track.see) for track in tracks]
        return gives_of(self.recipe.system, predictions(self.recipe), *parts)

    @cached_property
    def packs(self) -> bool:
        """Whether the networks accept rows with several examples."""
        return "unpacked rows" not in needs_of(self.recipe.system)

    @cached_property
    def ways(self) -> list[StageTrack]:
        """All different ways to hide and see rows, over all stages."""
        found: list[StageTrack] = []
        for stage in self.recipe.schedule:
            for track, choices in self.recipe.all_tracks(stage).items():
                alike = dataclasses.replace(choices, share=1.0)
                known = any(w.track == track and dataclasses.replace(w.choices, share=1.0) == alike for w in found)
                if choices.share > 0 and not known:
                    found.append(StageTrack(track, stage, choices))
        return found

    @cached_property
    def system(self) -> Any:
        """The system with initial weights, in evaluation mode. Contracts that train build their own."""
        return self.build().eval()

    @property
    def vocabulary(self) -> Vocabulary:
        return self.tokenizer.vocabulary

    @cached_property
    def mixture(self) -> Mixture:
        return Mixture.open([self.data])

    @cached_property
    def components(self) -> ComponentTable | None:
        return read_components(self.recipe, self.tokenizer)[0]

    @cached_property
    def _rows(self) -> dict[Any, Batch]:
        return {}

    def build(self, recipe: Recipe | None = None) -> Any:
        """A new system of this recipe; None: of the recipe of the case."""
        recipe = recipe or self.recipe
        system: Any = recipe.system.build(recipe, self.vocabulary, SEED)
        if recipe.start is not None:
            table, words = system.backbone.embed.token.weight, self.tokenizer.spelled()
            recipe.start.fill(table, token_biases(system), words, self.mixture.sample)
        put_entities(system, self.mixture)
        put_components(system, recipe, self.mixture, self.components)
        return system

    def rows(self, way: StageTrack, count: int = ROWS, length: int = LENGTH) -> Batch:
        """The first rows of the data as a track arranges them, with no token hidden. Every call returns the same record."""
        key = (way.track, count, length)
        if key not in self._rows:
            batch = self.mixture.loader(self.recipe.alone(way.track), length, SEED, None, count).batch(count)
            self._rows[key] = batch.replace(tracks=((way.track, len(batch.ids)),))
        return self._rows[key]

    def hide(self, way: StageTrack, batch: Batch, system: Any = None) -> Batch:
        """The batch, hidden and ranked in this way."""
        hidden: Batch = (system or self.system).hide(batch, way.stage.hide)[0]
        return hidden


def make_case(recipe: Recipe, small: SmallData) -> Case:
    """The case of a recipe. What it takes from files or from the data (word vectors, the entities of a graph) is filled in."""
    settings = [
        f"{path}.file={small.components()}"
        for path, part in parts_in(recipe.system, "system")
        if "components" in part.gives
    ]
    if recipe.start is not None and "word vectors" in recipe.start.gives:
        backbone: Any = recipe.system.backbone
        settings += [f"start.file={small.vectors(backbone.embedding or backbone.width)}"]
    case = Case(override(shortened(recipe), settings), small)
    if "entity vectors" in case.gives:
        case = Case(with_entities(case.recipe, Mixture.open([case.data])), small)
    if "components" in case.gives:
        case = Case(with_components(case.recipe, case.tokenizer, case.components), small)
    decided = with_tasks(case.recipe, case.tokenizer)
    return case if decided is case.recipe else Case(decided, small)


def shortened(recipe: Recipe) -> Recipe:
    """The recipe with few short rows per step, a short memory, and cutoffs for a small vocabulary."""
    given = gives_of(recipe.system)
    settings = [f"schedule.{i}.length={LENGTH * min(i + 1, LENGTHS)}" for i in range(len(recipe.schedule))]
    shares = [track.share for track in recipe.all_tracks().values() if track.share > 0]
    rows = ROWS if recipe.takes_turns else max(ROWS, math.ceil(1 / min(shares)))  # at least one row for each track
    settings += [f"schedule.*.rows={rows}", "optimise.warmup=0.1"]
    settings += [f"system.backbone.memory={MEMORY}"] if "memory" in given and "cells" not in given else []
    settings += [f"system.backbone.cutoffs=({VOCABULARY // 4}, {VOCABULARY // 2})"] if "clusters" in given else []
    return override(recipe, settings).replace(shrink=False)


def without_dropout(recipe: Recipe) -> Recipe:
    return override(recipe, [f"{name}=0.0" for name in flat(recipe) if name.endswith("dropout")])


def settings_of(part: Any) -> frozenset[str]:
    """The names of the fields of a part."""
    return frozenset(value.name for value in dataclasses.fields(part))


def is_by_units(rule: Hide) -> bool:
    """Whether a rule chooses units up to a budget and replaces them: it has these three settings."""
    return {"units", "budget", "replace"} <= settings_of(rule)


def hides_units(case: Case) -> bool:
    """Whether a rule of the recipe chooses units up to a budget."""
    return any(is_by_units(rule) for way in case.ways for rule in rules(way.choices.hide))


def has_decoder(case: Case) -> bool:
    """Whether a decoder predicts the targets."""
    return "decoder rows" in case.gives
