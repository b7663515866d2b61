"""Writing whole or not at all: to a draft next to the place, which takes the place when everything is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unmask.errors import require


def check_free(out: Path, *, overwrite: bool, folder: bool = False) -> None:
    """What is at the place is kept, unless it may be replaced and is of the same sort."""
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    require(not out.is_dir() or folder, f"{out} is a folder, and a file is to be written: choose another --out")
    require(not out.is_file() or not folder, f"{out} is a file, and a folder is to be written: choose another --out")


@contextmanager
def drafted(out: Path, *, folder: bool = False) -> Iterator[Path]:
    """A file or folder to write to. If that fails nothing is left, not even folders that were made for it."""
    made = [parent for parent in out.parents if not parent.exists()]  # the nearest first
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if folder:
            draft.mkdir()
        else:
            draft.touch()
        yield draft
        if folder and out.exists():
            shutil.rmtree(out)
        draft.replace(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
            for parent in made:
                parent.rmdir()
        raise
