"""How verbs open a run: with the user's recipe file if one is given, and with what there is to say about the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unmask.cli import output

if TYPE_CHECKING:
    from unmask.infer import Model


def opened(
    run: Path, recipe_file: Path | None, *, device: str | None = None, half: bool = False, json_: bool = False
) -> Model:
    """The model of a run."""
    from unmask.infer import open_run

    model = open_run(run, device=device, half=half, recipe=recipe_file)
    for notice in model.notices:
        output.notice(notice, json_)
    return model
