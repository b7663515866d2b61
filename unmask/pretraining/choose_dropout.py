"""Choose the dropout of networks that leave it to pretraining (dropout=auto), and say so."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.backbone.auto_dropout import OFTEN, USUAL, dropout_for
from unmask.recipe import Recipe


def automatic(recipe: Recipe) -> dict[str, Any]:
    """The networks of a recipe whose dropout is automatic, by the names of their fields in the system."""
    found = {name: getattr(recipe.system, name) for name in recipe.system.networks}
    return {name: network for name, network in found.items() if getattr(network, "dropout", None) == "auto"}


def with_dropout(recipe: Recipe, visits: float) -> Recipe:
    """The recipe with a number for every dropout. `visits`: how many times the text is read."""
    chosen = {
        n: dataclasses.replace(part, dropout=dropout_for("auto", visits)) for n, part in automatic(recipe).items()
    }
    system: Any = recipe.system
    return recipe.replace(system=dataclasses.replace(system, **chosen))


def about_dropout(recipe: Recipe, visits: float, *, estimated: bool) -> str:
    """A notice: the dropout that was chosen, why, and how to choose another. `recipe`: before the choice."""
    names = " and ".join(f"system.{name}.dropout" for name in automatic(recipe))
    about = "about " if estimated else ""
    return (
        f"the text is read {about}{visits:.2g} times, so dropout is {dropout_for('auto', visits):g} ({names}=auto: 0 for text that is "
        f"read fewer than {OFTEN} times, otherwise {USUAL:g}); the run is adapted with the same dropout; set a number to choose it"
    )
