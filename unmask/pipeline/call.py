"""One command of a stage: the same value is shown as words of the command line and is run by the Python API."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.api.stands_for import options


@dataclass(frozen=True)
class Call:
    """A verb of the command line with its words. `options`: by their names, such as --budget; None is left out."""

    verb: str
    words: tuple[str | Path, ...]
    options: Mapping[str, Any]

    @property
    def out(self) -> Path | None:
        """What it writes."""
        return self.options.get("--out")

    @property
    def command(self) -> str:
        """What a user would type in the folder of this process."""
        given = {name: near(value) for name, value in self.options.items()}
        return shlex.join(["unmask", self.verb, *map(str, map(near, self.words)), *options(given)])


def near(value: Any) -> Any:
    """A path as a user types it: from the current folder, if it is inside of it."""
    if isinstance(value, tuple | list):
        return [near(one) for one in value]
    here = f"{os.getcwd()}{os.sep}"
    return str(value).replace(here, "") if isinstance(value, str | Path) else value
