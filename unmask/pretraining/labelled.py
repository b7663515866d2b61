"""Labelled tracks of pretraining: the task of each, its labels and its head come from its file of examples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask import tasks
from unmask.axes import columns_of
from unmask.data.examples import rows_of_track
from unmask.data.labelled import EXAMPLES, fingerprint
from unmask.errors import require
from unmask.recipe import Recipe, Track
from unmask.tasks._track import learned, track_of
from unmask.text import Tokenizer

SOME = 8  # examples that are laid out to see which columns their rows have


@dataclass(frozen=True)
class _Base:
    """What a task must know about the model that is pretrained (`unmask.axes.Pretrained`)."""

    recipe: Recipe
    tokenizer: Tokenizer
    folder: Path

    @property
    def length(self) -> int:
        return self.recipe.longest


def with_tasks(recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
    """The recipe in which every labelled track has its task, with labels, and a head."""
    base = _Base(recipe, tokenizer, Path(recipe.name))
    decided = {name: _decided(base, name, track) for name, track in recipe.tracks.items() if _labelled(track)}
    _check_main(recipe)
    return recipe.replace(tracks=recipe.tracks | decided) if decided else recipe


def _labelled(track: Track) -> bool:
    return track.arrange is not None and EXAMPLES in track.arrange.gives


def _check_main(recipe: Recipe) -> None:
    require(
        EXAMPLES not in recipe.arrange.gives,
        "labelled examples are a track that takes turns with text: set tracks.NAME=Track(arrange=Labelled(file='FILE')) and "
        "schedule.*.turns={{'main': 1, 'NAME': 1}}, or adapt a finished model with 'unmask adapt'",
    )


def _decided(base: _Base, name: str, track: Track) -> Track:
    """The track with everything that its examples decide."""
    arrange: Any = track.arrange
    mark = fingerprint(arrange.file)
    task = arrange.task or tasks.get(_kind(arrange.file, name))
    examples, _ = task.read(Path(arrange.file), None)
    task = learned(task, examples, arrange.file)
    found = track_of(base, name, track, task, replace(arrange, fingerprint=mark))
    some = rows_of_track(task.lay_out(examples[:SOME]), base.tokenizer, base.recipe.layout, base.length)[0]
    missing = columns_of(found.hide, base.recipe.system, found.own) - some.columns.keys()
    require(
        not missing,
        "the track {name!r} needs the columns {missing} of a prepared text, and labelled examples do not have them: leave the track "
        "out, or adapt the finished model to the task with 'unmask adapt'",
        name=name,
        missing=", ".join(sorted(missing)),
    )
    return found


def _kind(file: str, name: str) -> str:
    found = tasks.kind_of(file)
    known = "; ".join(f"{kind}: {spelled(kind)}" for kind in tasks.names())
    require(
        found is not None,
        "no task reads the columns of {file}; {known}: rename its columns, or set tracks.{name}.arrange.task",
        file=file,
        known=known,
        name=name,
    )
    return str(found)


def spelled(kind: str) -> str:
    """The columns of a kind of task, in words."""
    return " or ".join("+".join(names) for names in tasks.get(kind).columns)
