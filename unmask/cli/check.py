"""The verb that checks a recipe against the contracts that every recipe must keep."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Json, Settings, Variant
from unmask.cli.program import verb


@verb("unmask check bert")
def check(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or a .py file with a recipe.")],
    size: Annotated[str | None, typer.Option(help="By default tiny, or the first size that the recipe has.")] = None,
    variant: Variant = "paper",
    settings: Settings = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Check on small data that a recipe keeps every contract: nothing leaks, hiding touches only what it chose, it learns,
    resumes, survives saving, accumulates and packs exactly. The exit code is 1 if a contract is broken."""
    found = list(unmask.check(recipe, size=size, variant=variant, settings=settings))
    if json_:
        output.as_json([dataclasses.asdict(outcome) for outcome in found])
    else:
        rows = [
            [o.contract, "passed" if o.passed else "failed", f"{o.seconds:.1f}", o.message or o.promise] for o in found
        ]
        screen.table(" ".join(filter(None, [recipe, size, variant])), ["contract", "result", "seconds", ""], rows)
    if not all(outcome.passed for outcome in found):
        raise typer.Exit(1)
