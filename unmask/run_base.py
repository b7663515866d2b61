"""The base of a run that holds only what was trained: where it is, and the fingerprint of its weights."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from unmask.errors import UserError, require
from unmask.train import checkpoint
from unmask.train.checkpoint import WEIGHTS

BASE = "base.json"


@dataclass(frozen=True)
class Base:
    """The run whose weights a tuned run uses."""

    path: str  # of its folder, when the tuned run was made
    relative: str  # the same, from the folder of the tuned run: both may have moved together
    sha256: str  # of its weights: the fingerprint

    @classmethod
    def of(cls, folder: Path, out: Path) -> Base:
        """The base in a folder, for a tuned run at `out`."""
        require(
            (folder / WEIGHTS).is_file(),
            "{folder} has no {weights}, and a run that holds only what was trained needs its base: save the base first",
            folder=folder,
            weights=WEIGHTS,
        )
        return cls(str(folder.resolve()), os.path.relpath(folder, out), checkpoint.digest(folder / WEIGHTS))

    def found(self, out: Path) -> Path:
        """The folder of the base. `out`: the folder of the tuned run."""
        places = [Path(self.path), out / self.relative]
        found = next((place for place in places if (place / WEIGHTS).is_file()), None)
        if found is None:
            raise UserError(
                "{out} holds only what was trained, and its base is not at {path} any more: write the new path of the base "
                "into {file}, or open the base and add this run to it: unmask.load(BASE).add({out!r})",
                out=str(out),
                path=self.path,
                file=out / BASE,
            )
        self.check(found, out)
        return found

    def check(self, folder: Path, out: Path) -> None:
        """Refuse a base with other weights than those that the tuned run was trained with."""
        got = checkpoint.digest(folder / WEIGHTS)
        require(
            got == self.sha256,
            "{out} was tuned on {path} (fingerprint {wanted}), but {folder} has other weights (fingerprint {got}): give the "
            "base that it was tuned on, or tune it again on {folder}",
            out=out,
            path=self.path,
            wanted=self.sha256[:12],
            folder=folder,
            got=got[:12],
        )


def read_base(folder: Path) -> Base | None:
    """The base of a run; None if the run holds all its weights."""
    file = folder / BASE
    if not file.is_file():
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return Base(*(str(data[name]) for name in ("path", "relative", "sha256")))
    except (ValueError, TypeError, KeyError) as error:
        raise UserError("{file} is damaged ({error}): tune the run again", file=file, error=error) from None
