"""The labelled files of a stage that pretrains: files, or a folder of tasks. Each is a track with a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from unmask import adapt, tasks
from unmask.comparison.task_files import find
from unmask.errors import require
from unmask.pipeline.description import LabelledFile
from unmask.pipeline.toml_file import TomlFile, path_in
from unmask.recipe import Recipe
from unmask.system import objectives
from unmask.tasks._track import check_track_name
from unmask.text.documents import suffixes

_SPLITS = ("train", "dev", "test")  # a file of such a name has the name of its folder
_TAKEN = ("main", "triples")  # names of other tracks


def labelled_files(file: TomlFile, stage: str, given: Sequence[str]) -> tuple[LabelledFile, ...]:
    """The files that the field `labelled` of a stage names."""
    keys, found = (stage, "labelled"), []
    for one in given:
        path = path_in(file, one)
        file.require(path.exists(), keys, "there is no such file or folder: {path}", path=path)
        found += _of_folder(file, keys, path) if path.is_dir() else [LabelledFile(_name(path), str(path))]
    names = [one.name for one in found]
    wrong = next((name for name in names if names.count(name) > 1 or name in _TAKEN), None)
    file.require(
        wrong is None,
        keys,
        "[{stage}] has two tracks with the name {name!r}: rename a file or its folder, because the name of a task is that of its "
        "file, or of its folder if the file is called train",
        stage=stage,
        name=wrong,
    )
    return tuple(found)


def check_file(given: LabelledFile) -> None:
    """Refuse a file that no task reads, or can learn from."""
    kind = tasks.kind_of(given.train)
    require(
        kind is not None,
        "no task reads {train} by its columns: docs/adapt.md lists the columns of every task",
        train=given.train,
    )
    adapt.read_files(tasks.get(str(kind)), given.train, given.dev)


def check_names(given: Sequence[LabelledFile], recipe: Recipe) -> None:
    """Refuse a name that the recipe has for a track or a loss of its own: the head of a task has the name of the task."""
    for one in given:
        check_track_name(one.name)
        require(
            one.name not in (*recipe.tracks, *objectives(recipe), *recipe.system.losses),
            "{name} has a track or a loss with the name {taken!r} already: rename {train}, or its folder if the file is called train",
            name=recipe.name,
            taken=one.name,
            train=one.train,
        )


def _of_folder(file: TomlFile, keys: tuple[str, ...], folder: Path) -> list[LabelledFile]:
    """The tasks of a folder: NAME/train.jsonl and, if it is there, NAME/dev.jsonl."""
    found, notices = find(folder)
    file.require(not notices, keys, "{notices}", notices="; ".join(notices))
    trained = [task for task in found if task.train is not None]
    file.require(bool(trained), keys, "{folder} has no task with a train file: NAME/train.jsonl", folder=folder)
    return [LabelledFile(_plain(t.name), str(t.train), str(t.dev) if t.dev else None) for t in trained]


def _name(path: Path) -> str:
    stem = path.name.removesuffix("".join(suffixes(path)))
    return _plain(path.parent.name if stem in _SPLITS else stem)


def _plain(name: str) -> str:
    """As the name of a track: letters, digits and _, with a letter first."""
    found = re.sub(r"\W+", "_", name)
    return found if found[:1].isalpha() else f"task_{found}"
