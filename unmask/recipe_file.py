"""A recipe file of the user: a .py file like those in `unmask.recipes`. It is run only if the user names it."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from unmask.errors import UserError, require, unknown
from unmask.recipe import Recipe

_SELF = "__recipe_file__"  # the variable of a loaded module that holds its RecipeFile
SHAPE = "a recipe file has a function recipe(size, variant) that returns an unmask.recipe.Recipe"


@dataclass(frozen=True)
class RecipeFile:
    """A loaded recipe file."""

    path: Path  # as the user gave it
    sha256: str  # of its content
    module: ModuleType = dataclasses.field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """Its name in a run: the file name without the folder."""
        return self.path.name

    @property
    def parts(self) -> dict[str, type]:
        """The dataclasses that it defines."""
        own = [
            value for value in vars(self.module).values() if getattr(value, "__module__", "") == self.module.__name__
        ]
        return {part.__qualname__: part for part in own if isinstance(part, type) and dataclasses.is_dataclass(part)}

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "SIZES", ("base",)))

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "VARIANTS", ("paper",)))

    def recipe(self, *, size: str, variant: str) -> Recipe:
        """The recipe that the function `recipe` of the file returns for a size and a variant."""
        if size not in self.sizes:
            raise unknown(f"size of {self.path}", size, self.sizes)
        if variant not in self.variants:
            raise unknown(f"variant of {self.path}", variant, self.variants)
        function: Any = getattr(self.module, "recipe", None)
        require(callable(function), "{path} has no function recipe: {shape}", path=self.path, shape=SHAPE)
        try:
            made: Recipe = function(**_accepted(function, {"size": size, "variant": variant}))
        except Exception as error:
            raise _failed(self.path, error) from None
        require(
            isinstance(made, Recipe),
            "{path} returns {made_kind}, not a Recipe: {shape}",
            path=self.path,
            made_kind=type(made).__name__,
            shape=SHAPE,
        )
        return made


def is_path(name: str) -> bool:
    """Whether this is the path of a recipe file, and not the name of a recipe of unmask."""
    return name.endswith(".py")


def load(path: str | Path) -> RecipeFile:
    """Load a recipe file by running it. A file with the same path and content is run only once."""
    path = Path(path)
    require(path.is_file(), "no recipe file at {path}: give a .py file; {shape}", path=path, shape=SHAPE)
    source = path.read_bytes()
    place = hashlib.sha256(str(path.resolve()).encode() + b"\0" + source).hexdigest()
    name = f"unmask_recipe_file_{place[:16]}"
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)  # dataclasses look up their module here
        try:
            _run(source, path, sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    module = sys.modules[name]
    file = RecipeFile(path, hashlib.sha256(source).hexdigest(), module)
    setattr(module, _SELF, file)
    return file


def file_of(part: type) -> RecipeFile | None:
    """The recipe file that defines a part; None if no recipe file does."""
    return getattr(sys.modules.get(part.__module__), _SELF, None)


def file_used_by(value: Any) -> RecipeFile | None:
    """The recipe file that defines a part of this recipe; None if every part is one of unmask."""
    return next(iter(files_used_by(value)), None)


def files_used_by(value: Any) -> list[RecipeFile]:
    """All recipe files that define parts of this recipe."""
    if isinstance(value, dict | tuple | list):
        items = list(value.values() if isinstance(value, dict) else value)
    elif dataclasses.is_dataclass(value):
        items = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        return []
    found = [file_of(type(value)), *(file for item in items for file in files_used_by(item))]
    return list({file.path: file for file in found if file is not None}.values())


def _run(source: bytes, path: Path, module: ModuleType) -> None:
    module.__file__ = str(path.resolve())
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise _failed(path, error) from None
    for name, value in vars(module).items():
        mine = isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value)
        require(
            not mine or all(hasattr(value, fact) for fact in ("needs", "gives", "must_use")),
            ("the part {name} of {path} does not declare its needs and gives: let it inherit from unmask.axes.Part"),
            name=name,
            path=path,
        )


def _accepted(function: Any, values: dict[str, str]) -> dict[str, str]:
    """The values for which a function has parameters."""
    return {name: value for name, value in values.items() if name in inspect.signature(function).parameters}


def _failed(path: Path, error: Exception) -> UserError:
    """A one-line error about a recipe file: the line, and what is wrong."""
    if isinstance(error, SyntaxError):
        return UserError(
            "{path}, line {lineno}: {msg}; correct the file", path=path, lineno=error.lineno, msg=error.msg
        )
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return UserError(f"{path}{f', line {lines[-1]}' if lines else ''}: {what}".replace("\n", " "))
