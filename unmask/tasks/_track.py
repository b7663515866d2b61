"""Turn a task into a track: its rows are the examples of a labelled file, its head is an objective of the track."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from unmask.axes import Objective, Pretrained
from unmask.data import Labelled
from unmask.errors import UserError, require
from unmask.recipe import MAIN, Recipe, Track


def track_of(base: Pretrained, name: str, given: Track, task: Any, arrange: Labelled) -> Track:
    """The track of a learned task, with the head that the task would have alone; what `given` has is kept.

    The head has the name of the track, so the labels of two tracks never meet, also if they have the same names."""
    check_track_name(name)
    made: Recipe = _alone(task, name).recipe(base)
    _check_network(base, name, made)
    own: dict[str, Objective] = {name: made.predict[made.task.head]} if made.task and made.task.head else {}
    shared = () if own else tuple(made.predict)
    return dataclasses.replace(
        given,
        arrange=dataclasses.replace(arrange, task=made.task),
        hide=given.hide or made.hide,
        see=given.see or made.see,
        segments=given.segments or made.segments,
        predict=shared if given.predict is None else given.predict,
        own=given.own | own,
    )


def learned(task: Any, examples: Sequence[Any], file: str | Path) -> Any:
    """The task with the values that the examples of a file decide. An error names the file: there are several."""
    try:
        return task.learn(examples)
    except UserError as error:
        raise UserError("{file}: {error}", file=file, error=error) from None


def check_track_name(name: str) -> None:
    """Refuse a name that no module of a network and no setting can have."""
    taken = name == MAIN or hasattr(nn.ModuleDict, name)
    require(
        bool(re.fullmatch(r"[\w-]+", name)) and not taken,
        "a track with labelled examples cannot be called {name!r}: {why}; rename it (in a folder of tasks, its folder)",
        name=name,
        why="the name has another meaning" if taken else "use letters, digits, _ and -",
    )


def _alone(task: Any, name: str) -> Any:
    """The task without the loss of the next token, which other tracks have."""
    if not task.predicts_next:
        return task
    require(
        task.language is None or task.language == 0,
        "language={language} adds the loss of the next token to the task {name!r}, but tracks have this loss by their turns: leave "
        "language out, and give the track of the text more turns",
        language=task.language,
        name=name,
    )
    return dataclasses.replace(task, language=0.0)


def _check_network(base: Pretrained, name: str, made: Recipe) -> None:
    """Refuse a task that changes what all tracks share."""
    kind = type(made.task).__name__
    require(
        made.layout == base.recipe.layout,
        "the task {name!r} ({kind}) lays a text out as {layout!r}, but all tracks of a run have one layout, {layout_2!r}: adapt the "
        "finished model to it instead",
        name=name,
        kind=kind,
        layout=made.layout,
        layout_2=base.recipe.layout,
    )
    require(
        made.system.backbone == base.recipe.system.backbone,
        "the task {name!r} ({kind}) changes the network, which all tracks of a run share: adapt the finished model to it instead, or "
        "leave its settings of the network out",
        name=name,
        kind=kind,
    )
    missing = [token for token in made.task.special_tokens if base.tokenizer.backend.token_to_id(token) is None]  # type: ignore[union-attr]
    require(
        not missing,
        "the task {name!r} ({kind}) puts {missing} into its texts, and the tokenizer does not have them: adapt the finished model to it "
        "instead, or leave the marks out",
        name=name,
        kind=kind,
        missing=" and ".join(missing),
    )
