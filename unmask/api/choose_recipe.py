"""Which recipe a caller means: a name, a .py file, a run folder, or a Recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask import recipes
from unmask.errors import require
from unmask.recipe import Recipe


@dataclass(frozen=True)
class OfRun:
    """The recipe of a run."""

    recipe: Recipe
    tokenizer: Path  # the run's file
    notices: tuple[str, ...]  # what to say of the recipe file that was given


def named(
    recipe: str | Recipe, *, size: str | None = None, variant: str | None = None, settings: Sequence[str] = ()
) -> Recipe:
    """A recipe as it is, or by its name or file; by default of size base and of the variant paper."""
    if isinstance(recipe, Recipe):
        require(
            size is None and variant in (None, "paper") and not settings,
            "size, variant and settings belong to a recipe's name, and a Recipe was given: leave them out",
        )
        return recipe
    return recipes.get(recipe, size=size or "base", variant=variant or "paper", settings=list(settings))


def to_continue(
    recipe: str | Recipe, start: str | Path, *, size: str | None, variant: str, settings: Sequence[str],
    recipe_file: str | Path | None,
) -> Recipe:  # fmt: skip
    """The same to continue from a run: it has that run's size."""
    if isinstance(recipe, Recipe):
        return named(recipe, size=size, variant=variant, settings=settings)
    require(
        size is None,
        "the network comes from {start}: leave size out (--size), or leave start out (--from)",
        start=start,
    )
    return recipes.continued(recipe, start, variant=variant, settings=list(settings), file=recipe_file)


def of_run(recipe: str | Recipe, settings: Sequence[str], recipe_file: str | Path | None) -> OfRun | None:
    """The recipe of a run folder; None if no run is named. `recipe_file`: its recipe file, if it uses parts of one."""
    from unmask import run  # it imports torch, and naming a recipe does not need it
    from unmask.settings import override

    folder = Path(recipe) if isinstance(recipe, str) and (Path(recipe) / run.RECIPE).is_file() else None
    if folder is None:
        require(
            recipe_file is None,
            "--recipe is for a run folder, and {recipe} is not one: leave --recipe out",
            recipe=recipe,
        )
        return None
    file = run.given_file(folder, recipe_file)
    changed = override(run.read_recipe(folder, file), settings, own=tuple(file.parts.values()) if file else ())
    return OfRun(changed, folder / run.TOKENIZER, run.notices_of(folder, file))
