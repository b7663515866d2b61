"""The verbs that list what there is: recipes, show, diff, parts."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Json, Settings, Size, Variant
from unmask.cli.program import verb


@verb("unmask recipes")
def recipes(json_: Json = False) -> None:
    """List the recipes: name, year, and what each hides, sees and predicts."""
    found = unmask.list_recipes()
    if json_:
        output.as_json([dataclasses.asdict(entry) for entry in found])
        return
    screen.table("", ["recipe", "year", "idea"], [[e.name, e.year, e.idea] for e in found])


@verb("unmask show bert --size tiny --set hide.budget=0.2")
def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's name, or a .py file with a recipe.")],
    size: Size = "base",
    variant: Variant = "paper",
    settings: Settings = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Show every value of a recipe, with the names that --set takes; how many parameters are trained, how many are kept
    for use (the network without its heads), and the training operations per token."""
    found = unmask.describe(recipe, size=size, variant=variant, settings=settings)
    if json_:
        output.as_json({name: value for name, value in dataclasses.asdict(found).items() if name != "values"})
        return
    screen.table(f"{recipe} {size}", ["value", ""], [[name, value] for name, value in found.values.items()])
    screen.out.print(f"parameters in training          {found.parameters:,}")
    screen.out.print(f"parameters kept                 {found.kept:,}")
    screen.out.print(f"training operations per token   {found.flops_per_token:.3g}")


@verb("unmask diff bert roberta")
def diff(
    first: Annotated[str, typer.Argument(help="A recipe's name, or a .py file with a recipe.")],
    second: Annotated[str, typer.Argument(help="Another name or file.")],
    size: Size = "base",
    json_: Json = False,
) -> None:
    """Show the values in which two recipes differ."""
    found = unmask.differences(first, second, size=size)
    if json_:
        output.as_json({one.name: {first: one.first, second: one.second} for one in found})
        return
    rows = [["-" if value is None else value for value in one] for one in found]
    screen.table("", ["value", first, second], rows)


@verb("unmask parts hide")
def parts(
    axis: Annotated[str | None, typer.Argument(help="One axis, such as hide or backbone; by default all.")] = None,
    json_: Json = False,
) -> None:
    """List the parts that a recipe is made of, by axis: what each needs from other parts, and what it gives them."""
    found = unmask.list_parts(axis)
    if json_:
        output.as_json([dataclasses.asdict(entry) for entry in found])
        return
    rows = [[e.axis, e.name, e.about, ", ".join(e.needs), ", ".join(e.gives)] for e in found]
    screen.table("", ["axis", "part", "what it is", "needs", "gives"], rows)
