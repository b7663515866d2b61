"""The data of a run: prepared data sets with weights, the columns that a recipe needs, and the held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unmask.axes import Arrange, columns_of
from unmask.batch import Batch
from unmask.data import Collection, Shards
from unmask.data.labelled import EXAMPLES
from unmask.data.loader import TRACK_BITS, Loader, TrackReaders, shared_out, track_seed
from unmask.data.pack import SENTENCES
from unmask.data.sample import sample
from unmask.data.turns import TurnLoader
from unmask.data.validation import held_out
from unmask.errors import UserError, require
from unmask.recipe import FullTrack, Recipe, Stage
from unmask.system import chosen
from unmask.text import Tokenizer
from unmask.text.encode import CAPITAL, SIDE
from unmask.text.lexicon import LEVELS
from unmask.text.links import LINKED, LINKS

MICRO_TOKENS = {"cpu": 8_192, "cuda": 65_536}  # more tokens in one pass are not faster
VALIDATION_TOKENS = {"cpu": 8_192, "cuda": 262_144}
FIRST_ROWS = 64  # in which padding is counted
AT_ONCE = 1 << 22  # tokens that are looked at in one operation


def needed_columns(recipe: Recipe) -> set[str]:
    """The columns that the data must have for any stage and track of a recipe."""
    read = [
        track for stage in recipe.schedule for track in recipe.all_tracks(stage).values() if _is_read(recipe, track)
    ]
    return {name for track in read if not track.data for name in _columns_of_track(recipe, track)}


def _is_read(recipe: Recipe, track: FullTrack) -> bool:
    """Whether a track is read. A track that takes turns may have none."""
    return track.share > 0 or not recipe.takes_turns


def _columns_of_track(recipe: Recipe, track: FullTrack) -> set[str]:
    parts = (track.arrange, track.hide, track.see, recipe.system, chosen(recipe, track))
    made = {name.partition(":")[2] for name in track.arrange.gives}  # columns that the arrangement makes
    return set(columns_of(*parts)) - made


def weighed(argument: str) -> tuple[str, float]:
    """The path and the weight in an argument such as data/wiki or data/more:0.3."""
    path, _, weight = argument.rpartition(":")
    given = bool(path) and not Path(argument).exists() and weight.replace(".", "", 1).isdigit()
    return (path, float(weight)) if given else (argument, 1.0)


@dataclass(frozen=True)
class Mixture:
    """Prepared data sets and the weight of each."""

    shards: tuple[Shards, ...]
    weights: tuple[float, ...]
    tokenizer: Tokenizer

    @classmethod
    def open(cls, arguments: Sequence[str | Path]) -> Mixture:
        """Open data sets from arguments such as data/wiki or data/more:0.3."""
        require(bool(arguments), "no data was given: name folders made by 'unmask prepare'")
        shards, weights = [], []
        for argument in map(str, arguments):
            path, weight = weighed(argument)
            shards.append(Shards(path))
            weights.append(weight)
        tokenizer = Tokenizer.load(shards[0].folder)
        for other in shards:
            require(
                other.manifest["tokenizer"] == tokenizer.checksum,
                "{folder} was made with another tokenizer than {folder_2}: prepare both with the same one",
                folder=other.folder,
                folder_2=shards[0].folder,
            )
        return cls(tuple(shards), tuple(weights), tokenizer)

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that needs columns that were not prepared, or that would never read a data set."""
        for shards, needed in self._needs(recipe):
            if "word" in needed and shards.manifest["words"] == "none":
                raise UserError(
                    (
                        "{name} hides whole words, but {folder} was prepared without them: prepare it again with "
                        "'unmask prepare CORPUS --words auto'"
                    ),
                    name=recipe.name,
                    folder=shards.folder,
                )
            missing = sorted(needed - {SENTENCES, *shards.columns})
            require(
                CAPITAL not in missing,
                "{name} needs the column {column}, but {folder} was prepared without it: prepare it again with 'unmask prepare CORPUS "
                "--tokenizer FILE --capitals --out FOLDER', or leave the task out with schedule.*.turns.{track}=0",
                name=recipe.name,
                track=", ".join(
                    name for name, track in recipe.all_tracks().items() if CAPITAL in _columns_of_track(recipe, track)
                ),
                column=CAPITAL,
                folder=shards.folder,
            )
            require(
                SIDE not in missing,
                "{name} learns from pairs of a source and a target, but {folder} was prepared from texts: prepare JSON lines "
                '(.jsonl) in which each line has "source" and "target"',
                name=recipe.name,
                folder=shards.folder,
            )
            require(
                set(missing) <= set(LEVELS),
                "{name} needs the columns {missing}, but {folder} has {columns}: prepare it again with them",
                name=recipe.name,
                missing=", ".join(missing),
                folder=shards.folder,
                columns=", ".join(shards.columns),
            )
            require(
                not missing,
                (
                    "{name} hides {missing} units, but {folder} was prepared without them: make a lexicon with "
                    "'unmask lexicon', then 'unmask prepare CORPUS --tokenizer FILE --lexicon FILE "
                    "--out FOLDER'; or set hide.units=Words"
                ),
                name=recipe.name,
                missing=" and ".join(missing),
                folder=shards.folder,
            )
        for stage in recipe.schedule:
            self._check_tracks(recipe, stage.rows)

    def _needs(self, recipe: Recipe) -> Iterator[tuple[Shards, set[str]]]:
        """Each data set, and the columns that it must have."""
        for shards in self.shards:
            yield shards, needed_columns(recipe)
        for stage in recipe.schedule:
            for track in recipe.all_tracks(stage).values():
                for shards in self._of(track).shards if track.data and track.share else ():
                    yield shards, _columns_of_track(recipe, track)

    def _of(self, track: FullTrack) -> Mixture:
        """The data of a track: its own, or the data of the run. Examples of a task come from one file, in one reader."""
        if EXAMPLES in track.arrange.gives:
            return replace(self, shards=self.shards[:1], weights=(1.0,))
        if not track.data:
            return self
        found = Mixture.open(track.data)
        require(
            found.tokenizer.checksum == self.tokenizer.checksum,
            "{folder} was made with another tokenizer than {folder_2}: prepare both with the same one",
            folder=found.shards[0].folder,
            folder_2=self.shards[0].folder,
        )
        return found

    def _check_tracks(self, recipe: Recipe, rows: int) -> None:
        """Refuse a number of rows that leaves no row for a track or for a data set."""
        tracks = recipe.all_tracks()
        counts = [rows] * len(tracks) if recipe.takes_turns else shared_out([t.share for t in tracks.values()], rows)
        for (name, track), count in zip(tracks.items(), counts, strict=True):
            require(
                count > 0,
                (
                    "the track {name!r} would not be read: its share gives it none of the {rows} rows of a step; "
                    "raise its share or schedule.*.rows"
                ),
                name=name,
                rows=rows,
            )
            own = self._of(track)
            for shards, mine in zip(own.shards, own._rows_of_sets(track.arrange, count), strict=True):
                require(
                    mine > 0,
                    (
                        "{folder} would not be read: its weight gives it none of the {count} rows of a step; raise "
                        "its weight or schedule.*.rows, or leave it out"
                    ),
                    folder=shards.folder,
                    count=count,
                )

    def _rows_of_sets(self, arrange: Arrange, rows: int) -> list[int]:
        """The number of rows of a step from each data set. Rows that do not continue come from all data sets in turn."""
        return shared_out(list(self.weights), rows) if arrange.continuous else [rows] * len(self.weights)

    def empty_levels(self, recipe: Recipe) -> list[str]:
        """Levels that the recipe hides but that have no entry in any lexicon."""
        needed = needed_columns(recipe) & set(LEVELS)
        files = [file for shards in self.shards for file in shards.manifest.get("lexicon", [])]
        return sorted(level for level in needed if not any(file[level] for file in files))

    def lacks_links(self, recipe: Recipe) -> bool:
        """Whether the recipe reads links to entities, and no text has one."""
        linked = any(shards.manifest.get("notes", {}).get(LINKED) for shards in self.shards)
        return LINKS in needed_columns(recipe) and not linked

    def sample(self, tokens: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """About this many tokens of the training text, in pieces: their ids, and the number of the document of each."""
        return sample(self.shards, self.weights, tokens)

    def occurring(self, recipe: Recipe) -> np.ndarray:
        """V, whether each token is in the training text of any track."""
        found = np.zeros(self.tokenizer.vocabulary.size, bool)
        sets = {shards.folder: shards for shards, _ in self._needs(recipe)}
        for shard in (shard for shards in sets.values() for shard in shards.split("train")):
            for begin in range(0, len(shard.ids), AT_ONCE):
                found[shard.ids[begin : begin + AT_ONCE]] = True
        return found

    def loader(
        self, recipe: Recipe, length: int, seed: int, state: dict[str, Any] | None, rows: int, *, visit: int = 0,
        stage: Stage | None = None,
    ) -> Loader | TurnLoader:  # fmt: skip
        """Batches for training, with `rows` rows in a step, from a state on, or from the beginning of a visit.

        `stage`: if tracks take turns, those of this stage; None: those of the whole schedule."""
        tracks = self._tracks(self.shards, "train", recipe, length, seed)

        def opened(tracks: list[TrackReaders], weights: Sequence[float], state: dict[str, Any] | None) -> Loader:
            start = {"places": [{"visit": visit} for track in tracks for _ in track.readers]}
            return Loader(tracks, list(weights), rows, state or start)

        if not recipe.takes_turns:
            return opened(tracks, self.weights, state)
        choices = recipe.all_tracks(stage)
        each = {one.name: partial(opened, [one], self._of(choices[one.name]).weights) for one in tracks}
        return TurnLoader(each, {name: track.share for name, track in choices.items()}, rows, seed, state)

    def validation(self, recipe: Recipe, length: int, seed: int, device: str, most: int | None = None) -> list[Batch]:
        """Batches of held-out rows; an empty list if too little was held out. `most`: at most this number of tokens."""
        tokens = min(VALIDATION_TOKENS[device], VALIDATION_TOKENS[device] if most is None else most)
        rows, at_once = max(1, tokens // length), max(1, MICRO_TOKENS[device] // length)
        if not recipe.takes_turns:
            return self._held_out(recipe, length, seed, rows, at_once)
        found: list[Batch] = []
        for number, (name, track) in enumerate(recipe.all_tracks().items()):
            alone, mine = recipe.alone(name), max(1, round(rows * track.share)) if track.share else 0
            held = (
                self._of(track)._held_out(alone, length, track_seed(seed, name, number), mine, at_once) if mine else []
            )
            found += [b.replace(row=b.row + (number << TRACK_BITS), tracks=((name, len(b.ids)),)) for b in held]
        return found

    def _held_out(self, recipe: Recipe, length: int, seed: int, rows: int, at_once: int) -> list[Batch]:
        """At most `rows` held-out rows, at most `at_once` in a batch."""
        pairs = any(track.arrange.classes for track in recipe.all_tracks().values())
        needed = 2 if pairs else 1  # documents; a pair needs two
        sets = [shards for shards in self.shards if shards.documents("holdout") >= needed]
        readable = [shards for shards in sets if self._readable(shards, recipe, length, seed)]
        if not readable:
            return []
        tracks = self._tracks(readable, "holdout", recipe, length, seed)
        try:
            return held_out(tracks, rows, at_once)
        except UserError:  # the held-out text is too short for the sentence task, such as one document of one sentence
            return []

    def _readable(self, shards: Shards, recipe: Recipe, length: int, seed: int) -> bool:
        """Whether the held-out text of a data set is long enough for the readers."""
        try:
            self._tracks([shards], "holdout", recipe, length, seed)
        except UserError:
            return False
        return True

    def filled(self, recipe: Recipe, seed: int) -> float:
        """The share of the tokens of a step that are no padding, in the first step of a run."""
        stage = recipe.schedule[0]
        batch = self.loader(recipe, stage.length, seed, None, stage.rows, stage=stage).batch(
            min(stage.rows, FIRST_ROWS)
        )
        return float(batch.real.float().mean())

    def visits(self, tokens: float) -> float:
        """How many times a run of this many tokens reads its most repeated data set."""
        total = sum(self.weights)
        return max(tokens * w / total / max(1, s.tokens) for s, w in zip(self.shards, self.weights, strict=True))

    def _tracks(self, sets: Sequence[Shards], split: str, recipe: Recipe, length: int, seed: int) -> list[TrackReaders]:
        """The readers of each track of a recipe. Held-out text is not shuffled."""
        shared, found = [Collection(shards.split(split)) for shards in sets], []
        for number, (name, track) in enumerate(recipe.all_tracks().items()):
            if not _is_read(recipe, track):
                continue
            own = self._of(track)
            collections = shared if own is self else [Collection(one.split(split)) for one in own.shards]
            given = (self.tokenizer, recipe.layout, length, track_seed(seed, name, number))
            readers = [track.arrange.open(data, *given, shuffled=split == "train") for data in collections]
            found.append(TrackReaders(readers, name, track.share, number))
        return found
