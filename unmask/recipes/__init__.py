"""One file per paper. Recipes are found by file name; each holds choices and no logic."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask.errors import require, unknown
from unmask.recipe import Recipe, override, read_recipe

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """What a recipe's first line says."""

    name: str
    year: str
    paper: str
    idea: str  # hide ..., see ..., predict ...


def names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in _FOLDER.glob("[!_]*.py"))


def entries() -> list[Entry]:
    """The family, oldest first, read from the first lines without importing anything."""
    found = []
    for name in names():
        first = (ast.get_docstring(ast.parse(_file(name).read_text(encoding="utf-8"))) or "").splitlines()[0]
        paper, _, idea = first.partition("): ")
        year = re.search(r"\b(?:19|20)\d\d\b", paper)
        found.append(Entry(name, year.group() if year else "", paper + ")", idea))
    return sorted(found, key=_age)


def _age(entry: Entry) -> tuple[str, str]:
    """Year and month, from the number in arXiv where there is one; then the name."""
    number = re.search(r"arXiv:(\d{4})\.", entry.paper)
    return (number.group(1) if number else entry.year[2:] + "00", entry.name)


def get(name: str, *, size: str = "base", variant: str = "paper", settings: list[str] | tuple[str, ...] = ()) -> Recipe:
    """The recipe of this name, with a size, a variant and settings such as "hide.budget=0.2"."""
    if name not in names():
        raise unknown("recipe", name, names())
    module = importlib.import_module(f"unmask.recipes.{_file(name).stem}")
    if size not in module.SIZES:
        raise unknown(f"size of {name}", size, module.SIZES)
    if variant not in module.VARIANTS:
        raise unknown(f"variant of {name}", variant, module.VARIANTS)
    recipe: Recipe = module.recipe(size=size, variant=variant)
    return override(recipe.replace(shrink=recipe.shrink and not _size_of_a_step(settings)), settings)


def continued(
    name: str, run: str | Path, *, variant: str = "paper", settings: list[str] | tuple[str, ...] = ()
) -> Recipe:
    """The recipe of this name to go on from a run with: rates and batches of the run's size, where the recipe has it."""
    from unmask.system import check_continued  # it brings torch, which listing the family does not need

    path = Path(run) / "recipe.json"
    require(path.is_file(), f"no run to go on from at {run}: make one with 'unmask pretrain' or 'unmask import'")
    base = read_recipe(path)
    known = importlib.import_module(f"unmask.recipes.{_file(name).stem}").SIZES if name in names() else {}
    size = base.size if base.size in known else "base"
    asked = get(name, size=size, variant=variant, settings=settings)
    check_continued(asked, get(name, size=size), base)
    asked = gentle(asked, base).replace(shrink=not _size_of_a_step(settings))
    return override(asked, [setting for setting in settings if setting.startswith(("optimise", "shrink"))])


def _size_of_a_step(settings: Sequence[str]) -> bool:
    """Whether settings say how large a step is: then it stays so."""
    return any(re.match(r"schedule\.[^.=]+\.(rows|length)\b", setting) for setting in settings)


def gentle(recipe: Recipe, base: Recipe) -> Recipe:
    """The recipe with the rate and the warmup for a network that is trained already, of this width; its own, if lower."""
    usual, optimise = recipe.continuing, recipe.optimise
    width = base.system.backbone.width  # type: ignore[attr-defined]
    rate = min(optimise.rate, usual.rate * 768 / width)  # type: ignore[attr-defined]
    return recipe.replace(optimise=dataclasses.replace(optimise, rate=rate, warmup=usual.warmup))  # type: ignore[type-var]


def _file(name: str) -> Path:
    return _FOLDER / f"{name.replace('-', '_')}.py"


def smallest(name: str) -> str:
    """The smallest size of a recipe: "tiny", or the first that it has."""
    if name not in names():
        raise unknown("recipe", name, names())
    sizes = list(importlib.import_module(f"unmask.recipes.{_file(name).stem}").SIZES)
    return "tiny" if "tiny" in sizes else str(sizes[0])
