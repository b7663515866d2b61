"""Recipes: one file per paper, found by its file name. A recipe holds choices and no logic. A path names a user's file."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unmask import recipe_file
from unmask.errors import unknown
from unmask.recipe import Recipe
from unmask.settings import override

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """The first line of a recipe's docstring, in parts."""

    name: str
    year: str
    paper: str
    idea: str  # hide ..., see ..., predict ...


def names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in _FOLDER.glob("[!_]*.py"))


def entries() -> list[Entry]:
    """All recipes, the oldest paper first. They are read from the first lines of the files; nothing is imported."""
    return sorted(map(_entry, names()), key=_age)


@cache
def _entry(name: str) -> Entry:
    first = (ast.get_docstring(ast.parse(_file(name).read_text(encoding="utf-8"))) or "").splitlines()[0]
    paper, _, idea = first.partition("): ")
    year = re.search(r"\b(?:19|20)\d\d\b", paper)
    return Entry(name, year.group() if year else "", paper + ")", idea)


def _age(entry: Entry) -> tuple[str, str]:
    """The year and month of the paper, from its arXiv number if it has one; then the name."""
    number = re.search(r"arXiv:(\d{4})\.", entry.paper)
    return (number.group(1) if number else entry.year[2:] + "00", entry.name)


def get(name: str, *, size: str = "base", variant: str = "paper", settings: list[str] | tuple[str, ...] = ()) -> Recipe:
    """The recipe with this name, or from a recipe file such as "./mine.py", with settings such as "hide.budget=0.2"."""
    if recipe_file.is_path(name):
        file = recipe_file.load(name)
        return _set(file.recipe(size=size, variant=variant), settings, tuple(file.parts.values()))
    module = _module(name)
    if size not in module.SIZES:
        raise unknown(f"size of {name}", size, module.SIZES)
    if variant not in module.VARIANTS:
        raise unknown(f"variant of {name}", variant, module.VARIANTS)
    return _set(module.recipe(size=size, variant=variant), settings)


def _set(recipe: Recipe, settings: Sequence[str], own: Sequence[type] = ()) -> Recipe:
    return override(recipe.replace(shrink=recipe.shrink and not _size_of_a_step(settings)), settings, own=own)


def _sizes(name: str) -> Collection[str]:
    return recipe_file.load(name).sizes if recipe_file.is_path(name) else _module(name).SIZES


def _module(name: str) -> Any:
    if name not in names():
        raise unknown("recipe", name, names())
    return importlib.import_module(f"unmask.recipes.{_file(name).stem}")


def continued(
    name: str, start: str | Path, *, variant: str = "paper", settings: list[str] | tuple[str, ...] = (),
    file: str | Path | None = None,
) -> Recipe:  # fmt: skip
    """The recipe with this name, or from a recipe file, that continues from the run `start`.

    If the recipe has the size of the run, it uses the rates and batches of that size. `file`: the recipe file of the run,
    if the run uses parts of one; by default the recipe's own file."""
    from unmask import run  # run and system import torch; listing the recipes must not wait for it
    from unmask.system import check_continued

    own = recipe_file.load(name) if recipe_file.is_path(name) else None
    base = run.recipe_to_continue(Path(start), file or own)
    size = base.size if base.size in _sizes(name) else "base"
    asked = get(name, size=size, variant=variant, settings=settings)
    check_continued(asked, get(name, size=size), base)
    asked = gentle(asked, base).replace(shrink=not _size_of_a_step(settings))
    again = [setting for setting in settings if setting.startswith(("optimise", "shrink"))]
    return override(asked, again, own=tuple(own.parts.values()) if own else ())


def _size_of_a_step(settings: Sequence[str]) -> bool:
    """Whether a setting gives the number of rows or the row length: then the step is not made smaller."""
    return any(re.match(r"schedule\.[^.=]+\.(rows|length)\b", setting) for setting in settings)


def gentle(recipe: Recipe, base: Recipe) -> Recipe:
    """The recipe with the rate and warmup for continuing a trained network of this width. A lower rate of its own stays."""
    usual, optimise = recipe.continuing, recipe.optimise
    most = usual.rate * 768 / base.system.backbone.width
    names = [
        field.name for field in dataclasses.fields(optimise) if field.name.endswith("rate")
    ]  # an optimiser may have several
    rates = {name: min(getattr(optimise, name), most) for name in names if getattr(optimise, name) is not None}
    return recipe.replace(optimise=dataclasses.replace(optimise, **rates, warmup=usual.warmup))


def _file(name: str) -> Path:
    return _FOLDER / f"{name.replace('-', '_')}.py"


def smallest(name: str) -> str:
    """The smallest size of a recipe: "tiny", or otherwise the first in its list."""
    sizes = list(_sizes(name))
    return "tiny" if "tiny" in sizes else str(sizes[0])
