"""The data of a run: prepared sets and the weight of each, what a recipe needs of them, what is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.axes import columns_of
from unmask.data import Collection, Shards
from unmask.data.loader import Loader, Reader, collate, held_out
from unmask.data.stream_loader import ContinuingLoader, ContinuingReader, held_out_streams, shared_out
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.text import Tokenizer

MICRO_TOKENS = {"cpu": 8_192, "cuda": 65_536}  # more in one pass is no faster
VALIDATION_TOKENS = {"cpu": 8_192, "cuda": 262_144}


def needed_columns(recipe: Recipe) -> set[str]:
    """The columns that the data must have for any stage and track of a recipe."""
    tracks = [track for stage in recipe.schedule for track in recipe.all_tracks(stage).values()]
    return {column for track in tracks for column in columns_of(track.arrange, track.hide)}


@dataclass(frozen=True)
class Mixture:
    """Prepared data sets and the weight of each."""

    shards: tuple[Shards, ...]
    weights: tuple[float, ...]
    tokenizer: Tokenizer

    @classmethod
    def open(cls, arguments: Sequence[str | Path]) -> Mixture:
        """From arguments such as data/wiki or data/more:0.3."""
        require(bool(arguments), "no data given: name folders made by 'unmask prepare'")
        shards, weights = [], []
        for argument in map(str, arguments):
            path, _, weight = argument.rpartition(":")
            weighed = bool(path) and not Path(argument).exists() and weight.replace(".", "", 1).isdigit()
            shards.append(Shards(path if weighed else argument))
            weights.append(float(weight) if weighed else 1.0)
        tokenizer = Tokenizer.load(shards[0].folder)
        for other in shards:
            require(
                other.manifest["tokenizer"] == tokenizer.checksum,
                f"{other.folder} was made with another tokenizer than {shards[0].folder}: prepare both with the same one",
            )
        return cls(tuple(shards), tuple(weights), tokenizer)

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that hides units whose boundaries were not prepared, or that would leave out a data set."""
        needed = needed_columns(recipe)
        for shards in self.shards:
            if "word" in needed and shards.manifest["words"] == "none":
                raise UserError(
                    f"{recipe.name} hides whole words, and {shards.folder} was prepared without them: prepare it again "
                    "with 'unmask prepare CORPUS --words auto'"
                )
            missing = sorted(needed - {"word"} - set(shards.columns))
            require(
                not missing,
                f"{recipe.name} hides {' and '.join(missing)} units, and {shards.folder} was prepared without them: make a "
                "lexicon with 'unmask lexicon', then 'unmask prepare CORPUS --lexicon FILE'; or set hide.units=Words",
            )
        for stage in recipe.schedule if recipe.arrange.continuous else ():
            for shards, count in zip(self.shards, shared_out(list(self.weights), stage.rows), strict=True):
                require(
                    count > 0,
                    f"{shards.folder} would not be read: its weight gives it none of {stage.rows} rows of a step; raise its "
                    "weight or schedule.*.rows, or leave it out",
                )

    def empty_levels(self, recipe: Recipe) -> list[str]:
        """Levels that the recipe hides and of which the lexicons had no entry."""
        needed = needed_columns(recipe)
        files = [file for shards in self.shards for file in shards.manifest.get("lexicon", [])]
        return sorted(level for level in needed - {"word"} if not any(file[level] for file in files))

    def loader(
        self, recipe: Recipe, length: int, seed: int, state: dict[str, Any] | None, rows: int
    ) -> Loader | ContinuingLoader:
        """Batches for training, `rows` of them in a step: the batches of streams that go on depend on it."""
        if recipe.arrange.continuous:
            found = [self._stream_reader(shards, "train", recipe, length, seed) for shards in self.shards]
            return ContinuingLoader(found, list(self.weights), rows, state)
        readers = [self._reader(shards, "train", recipe, length, seed) for shards in self.shards]
        return Loader(readers, list(self.weights), state)

    def validation(self, recipe: Recipe, length: int, seed: int, device: str, most: int | None = None) -> list[Any]:
        """Batches of held-out rows, of `most` tokens if fewer than usual; none if nothing was held out. Those of streams
        follow each other."""
        tokens = min(VALIDATION_TOKENS[device], VALIDATION_TOKENS[device] if most is None else most)
        if recipe.arrange.continuous:
            return self._held_out_streams(recipe, length, seed, device, tokens)
        needed = 2 if recipe.arrange.classes else 1  # documents; a pair takes two
        sets = [shards for shards in self.shards if shards.documents("holdout") >= needed]
        rows = max(1, tokens // length // max(1, len(sets)))
        try:
            parts = [p for s in sets for p in held_out(self._reader(s, "holdout", recipe, length, seed), rows)]
        except UserError:  # what was held out is too little for the sentence task, such as one document of one sentence
            return []
        micro = max(1, MICRO_TOKENS[device] // length)
        return [collate([(g, c[i : i + micro])]) for g, c in parts for i in range(0, len(c), micro)]

    def _held_out_streams(self, recipe: Recipe, length: int, seed: int, device: str, tokens: int) -> list[Any]:
        readers = []
        for shards in self.shards:
            try:
                readers.append(self._stream_reader(shards, "holdout", recipe, length, seed))
            except UserError:  # too little of this data set was held out
                continue
        return held_out_streams(readers, max(1, tokens // length), max(1, MICRO_TOKENS[device] // length))

    def visits(self, tokens: float) -> float:
        """How often the most repeated data set will be read by a run of so many tokens."""
        total = sum(self.weights)
        return max(tokens * w / total / max(1, s.tokens) for s, w in zip(self.shards, self.weights, strict=True))

    def _reader(self, shards: Shards, split: str, recipe: Recipe, length: int, seed: int) -> Reader:
        collection = Collection(shards.split(split))
        return Reader(collection, self.tokenizer, recipe.arrange, recipe.layout, length, seed)

    def _stream_reader(self, shards: Shards, split: str, recipe: Recipe, length: int, seed: int) -> ContinuingReader:
        collection, arrange, shuffled = Collection(shards.split(split)), recipe.arrange, split == "train"
        return ContinuingReader(collection, self.tokenizer, arrange, recipe.layout, length, seed, shuffled=shuffled)
