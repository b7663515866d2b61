"""The verb that shows the main job: demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmask.cli import output
from unmask.cli.options import Device, Json, Overwrite, Seed
from unmask.cli.program import verb


@verb("unmask demo --minutes 3")
def demo(
    minutes: Annotated[float, typer.Option(help="How long it takes; a third longer on a busy machine.")] = 6.0,
    out: Annotated[Path, typer.Option(help="Where to put everything.")] = Path("demo"),
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """The main job on text that is on every machine: pretrain on documentation strings, adapt, compare."""
    from unmask.demo import demo as run

    results = run(out, minutes=minutes, seed=seed, device=device, overwrite=overwrite, quiet=json_)
    if json_:
        output.as_json(results)
