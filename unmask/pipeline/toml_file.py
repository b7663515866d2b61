"""A TOML file, and the line of each of its fields: an error in a user's file names the line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from unmask.errors import UserError, require

_AT = re.compile(r"\(at line (\d+)")
_TWICE = re.compile(r"Cannot (?:declare|overwrite)")
_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")


@dataclass(frozen=True)
class TomlFile:
    """What a file says, and its text."""

    path: Path
    text: str
    data: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        require(path.is_file(), "there is no such file: {path}", path=path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError("{path} is not UTF-8 ({error}): save it as UTF-8", path=path, error=error) from None
        try:
            return cls(path, text, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise _syntax(path, text, str(error)) from None

    def line(self, *keys: str) -> int:
        """The line where a field is given; 1 if it is not given. `keys`: its table, if it is in one, and its name.

        tomllib says what a file holds and not where. But the first lines of a file are a file too, wherever a statement ends.
        So the field begins in the line after the longest beginning without it."""
        lines, begins = self.text.split("\n"), 0
        for number in range(1, len(lines) + 1):
            try:
                known = tomllib.loads("\n".join(lines[:number]))
            except tomllib.TOMLDecodeError:  # in the middle of a list or a text of several lines
                continue
            if _holds(known, keys):
                return begins + 1
            begins = number
        return 1

    def fail(self, keys: tuple[str, ...], template: str, **values: Any) -> NoReturn:
        """Raise an error that begins with the file and the line of a field."""
        said = UserError(template, **values) if values else UserError(template)
        raise UserError("{path}, line {line}: {said}", path=self.path, line=self.line(*keys), said=said)

    def require(self, condition: bool, keys: tuple[str, ...], template: str, **values: Any) -> None:
        if not condition:
            self.fail(keys, template, **values)


def _holds(data: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def _syntax(path: Path, text: str, said: str) -> UserError:
    """The error for a file that is not TOML. A name that is given twice is the most common mistake."""
    found = _AT.search(said)
    line = int(found.group(1)) if found else len(text.split("\n"))
    header = _HEADER.match(text.split("\n")[line - 1]) if found else None
    if header and _TWICE.search(said):
        before = [n for n, one in enumerate(text.split("\n")[: line - 1], 1) if _same(one, header.group(1))]
        return UserError(
            "{path}, line {line}: two stages are called {name}{before}: give one of them another name",
            path=path,
            line=line,
            name=header.group(1),
            before=f", the other in line {before[0]}" if before else "",
        )
    return UserError(
        "{path}, line {line}: {said}. The file is TOML: [stage] begins a stage, and a field is NAME = VALUE, with texts in quotes",
        path=path,
        line=line,
        said=_AT.split(said)[0].strip(),
    )


def _same(line: str, name: str) -> bool:
    header = _HEADER.match(line)
    return header is not None and header.group(1) == name


def path_in(file: TomlFile, given: str) -> Path:
    """A path of a file: it begins at the folder of the file."""
    return Path(os.path.abspath(file.path.absolute().parent / Path(given).expanduser()))
