"""The verbs about the family of recipes: recipes, show, diff."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from unmask import screen
from unmask.cli import output
from unmask.cli.options import Json, Settings, Size, Variant
from unmask.cli.program import verb


@verb("unmask recipes")
def recipes(json_: Json = False) -> None:
    """List the recipes: name, year, and what each hides, sees and predicts."""
    from unmask.recipes import entries

    found = entries()
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
    from unmask import recipes as family
    from unmask.recipe_json import plain
    from unmask.settings import flat
    from unmask.system import cost

    chosen = family.get(recipe, size=size, variant=variant, settings=settings)
    price = cost(chosen, chosen.tokenizer.vocab)
    if json_:
        output.as_json({"recipe": plain(chosen)} | price)
        return
    rows = [[name, value] for name, value in flat(chosen).items()]
    screen.table(f"{recipe} {size}", ["value", ""], rows)
    screen.out.print(f"parameters in training          {price['parameters']:,}")
    screen.out.print(f"parameters kept                 {price['kept']:,}")
    screen.out.print(f"training operations per token   {price['flops_per_token']:.3g}")


@verb("unmask diff bert roberta")
def diff(
    first: Annotated[str, typer.Argument(help="A recipe's name, or a .py file with a recipe.")],
    second: Annotated[str, typer.Argument(help="Another name or file.")],
    size: Size = "base",
    json_: Json = False,
) -> None:
    """Show the values in which two recipes differ."""
    from unmask import recipes as family
    from unmask.settings import flat

    a, b = flat(family.get(first, size=size)), flat(family.get(second, size=size))
    names = [name for name in [*a, *(n for n in b if n not in a)] if name != "name" and a.get(name) != b.get(name)]
    if json_:
        output.as_json({name: {first: a.get(name), second: b.get(name)} for name in names})
        return
    screen.table("", ["value", first, second], [[name, a.get(name, "-"), b.get(name, "-")] for name in names])
