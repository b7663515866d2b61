"""Convert a recipe, or any part, to dicts, lists and numbers for JSON, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

from unmask.errors import UserError, require
from unmask.part_names import part_named, public_name
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile
from unmask.type_check import check_types, hints_of


def plain(value: Any) -> Any:
    """A part as dicts, lists and numbers; `part` holds its public name."""
    if dataclasses.is_dataclass(value):
        return {"part": public_name(type(value))} | {
            f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def recipe_of(data: Any, where: str, file: RecipeFile | None = None) -> Recipe:
    """The recipe that `plain` converted. `where`: the name of the source, for errors; `file`: the user's recipe file, if the
    recipe uses parts of it."""
    try:
        recipe: Recipe = _read(data, file)
    except TypeError as error:
        raise UserError("{where} is damaged or not a recipe: {error}", where=where, error=error) from None
    except UserError as error:
        raise UserError("{where}: {error}", where=where, error=error) from None
    require(isinstance(recipe, Recipe), "{where} is not a recipe", where=where)
    return recipe


def _read(value: Any, file: RecipeFile | None) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, file) for item in value)
    if not isinstance(value, dict):
        return value
    values = {key: _read(item, file) for key, item in value.items() if key != "part"}
    if "part" not in value:
        return values
    part = part_named(str(value["part"]), file)
    check_types(hints_of(part), values, f"{part.__name__}.")
    return part(**values)


def flat_data(data: Any) -> dict[str, Any]:
    """Every value in the result of `plain` by its dotted name; the value of a part is its public name."""
    found: dict[str, Any] = {}

    def walk(name: str, value: Any) -> None:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = dict(enumerate(value))
        if isinstance(value, dict) and value:
            for key, item in value.items():
                walk(name if key == "part" else f"{name}.{key}".lstrip("."), item)
        else:
            found[name] = value

    walk("", data)
    return found
