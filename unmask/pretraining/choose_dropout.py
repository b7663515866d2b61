"""Choose the dropout of networks that leave it to pretraining (dropout=auto), and say so."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.backbone.auto_dropout import OFTEN, USUAL, dropout_for
from unmask.recipe import Recipe


def automatic(recipe: Recipe) -> dict[str, list[str]]:
    """The dropouts of each network that are automatic, by the names of the networks in the system."""
    networks = {name: getattr(recipe.system, name) for name in recipe.system.networks}
    fields = {name: [field.name for field in dataclasses.fields(part)] for name, part in networks.items()}
    found = {n: [f for f in names if getattr(networks[n], f) == "auto"] for n, names in fields.items()}
    return {name: dropouts for name, dropouts in found.items() if dropouts}


def with_dropout(recipe: Recipe, visits: float) -> Recipe:
    """The recipe with a number for every dropout. `visits`: how many times the text is read."""
    system: Any = recipe.system
    chosen = {
        name: dataclasses.replace(getattr(system, name), **dict.fromkeys(dropouts, dropout_for("auto", visits)))
        for name, dropouts in automatic(recipe).items()
    }
    return recipe.replace(system=dataclasses.replace(system, **chosen))


def about_dropout(recipe: Recipe, visits: float, *, estimated: bool) -> str:
    """A notice: the dropout that was chosen, why, and how to choose another. `recipe`: before the choice."""
    names = " and ".join(
        f"system.{name}.{dropout}" for name, several in automatic(recipe).items() for dropout in several
    )
    about = "about " if estimated else ""
    return (
        f"the text is read {about}{visits:.2g} times, so dropout is {dropout_for('auto', visits):g} ({names}=auto: 0 for text that is "
        f"read fewer than {OFTEN} times, otherwise {USUAL:g}); the run is adapted with the same dropout; set a number to choose it"
    )
