"""Names of parts: the name of a part in files, and the parts of an axis."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from typing import Any

from unmask.axes import Part, PartLike
from unmask.errors import UserError, require
from unmask.recipe_file import RecipeFile, file_of
from unmask.type_check import is_part, is_protocol, options

# the packages that export parts; they are imported when a part is named, because most of them import torch
PACKAGES = (
    "unmask.text", "unmask.data", "unmask.hide", "unmask.see", "unmask.backbone", "unmask.predict", "unmask.system",
    "unmask.train", "unmask.curves", "unmask.vectors", "unmask.tasks",
)  # fmt: skip


def public_name(part: type) -> str:
    """The name of a part in files: `unmask.hide.Words`, or `mine.py:Vowels` for a part of a recipe file.

    Only the package and its subpackage are written, not the module, so that a part may move between files."""
    if part.__module__.split(".")[0] == "unmask":
        return ".".join([*part.__module__.split(".")[:2], part.__qualname__])
    file = file_of(part)
    if file is None:
        raise UserError(
            (
                "the part {qualname} is defined in {module}, but a run can only name parts of unmask and of a "
                "recipe file: move it to a .py file with a function recipe(size, variant), and give that file as "
                "the recipe"
            ),
            qualname=part.__qualname__,
            module=part.__module__,
        )
    return f"{file.name}:{part.__qualname__}"


def part_named(name: str, file: RecipeFile | None) -> type:
    """The part with this public name. Only modules of `unmask.` are imported; `file`: a file that the user gave, loaded."""
    if ":" in name:
        return _own_part(name, file)
    module, _, part_name = name.rpartition(".")
    require(module.startswith("unmask."), "a recipe may only name parts of unmask, got {name!r}", name=name)
    try:
        part = _classes(module).get(part_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):  # a library that is not installed
            raise
        part = None
    if part is None:
        raise UserError("this recipe names a part that this version of unmask does not have: {name}", name=name)
    require(dataclasses.is_dataclass(part), "{name} is not a part", name=name)
    return part


def _own_part(name: str, file: RecipeFile | None) -> type:
    file_name, _, part_name = name.partition(":")
    if file is None:
        raise UserError(
            (
                "it uses the part {part_name} of the recipe file {file_name}: give that file, with --recipe "
                '{file_name} or in Python with recipe="{file_name}"'
            ),
            part_name=part_name,
            file_name=file_name,
        )
    require(
        file.name == file_name,
        "it uses the part {part_name} of the recipe file {file_name}, but {path} was given: give {file_name}",
        part_name=part_name,
        file_name=file_name,
        path=file.path,
    )
    require(
        part_name in file.parts,
        "it uses the part {part_name}, but {path} has no such part: give the file that the run was made with",
        part_name=part_name,
        path=file.path,
    )
    return file.parts[part_name]


def parts_of(hint: Any, old: Any, own: Iterable[type] = ()) -> dict[str, type]:
    """The parts that a field with this type hint accepts, by name.

    A dataclass in the hint means that dataclass. A protocol means every exported part that has its members and methods; members that
    the present part `old` lacks are not required. `own`: parts of the user's recipe file."""
    found: dict[str, type] = {}
    for option in filter(is_part, options(hint)):
        if not is_protocol(option):
            found[option.__name__] = option
            continue
        kind: type = type(old)
        members = _members(option) & (_attributes(kind) if dataclasses.is_dataclass(old) else _members(option))
        methods = members & _methods(option)
        known = [p for p in (*_exported(), *own) if members <= _attributes(p) and methods <= _methods(p)]
        found |= {part.__name__: part for part in known}
    return dict(sorted(found.items()))


@cache
def _members(protocol: type) -> set[str]:
    """The members of a protocol, without the members that every part has."""
    bases = [base for base in protocol.__mro__ if is_protocol(base)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return {name for name in names - set(vars(PartLike)) if not name.startswith("_")}


@cache
def _attributes(part: Any) -> set[str]:
    return {*dir(part), *(field.name for field in dataclasses.fields(part))}


@cache
def _methods(part: Any) -> set[str]:
    """What can be called: a field of another part may have the name of a method."""
    return {name for name in dir(part) if callable(getattr(part, name, None))}


@cache
def _exported() -> list[type]:
    found = [value for package in PACKAGES for value in _classes(package).values()]
    return [value for value in found if dataclasses.is_dataclass(value) and issubclass(value, Part)]


@cache
def _classes(package: str) -> dict[str, type]:
    """The public classes of a package, from all its modules; so a new part needs only a new file.

    A module whose name begins with _ holds no parts: it is not imported here, and may need what is not installed."""
    module = importlib.import_module(package)
    inside = [info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ())) if info.name[0] != "_"]
    modules = [module, *(importlib.import_module(f"{package}.{name}") for name in inside)]
    found = {name: value for one in modules for name, value in vars(one).items() if isinstance(value, type)}
    return {name: value for name, value in found.items() if value.__module__.startswith(package) and name[:1] != "_"}
