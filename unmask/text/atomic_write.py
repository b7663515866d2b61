"""Atomic writing: write to a temporary file or folder, and rename it when everything is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unmask.errors import require


def check_free(out: Path, *, overwrite: bool, folder: bool = False, marker: str | None = None) -> None:
    """Refuse an output path that exists, unless it may be overwritten and is of the same type (file or folder).

    `marker`: a file that a folder must contain to be replaced."""
    require(overwrite or not out.exists(), "{out} exists already: choose another --out, or pass --overwrite", out=out)
    require(not out.is_dir() or folder, "{out} is a folder, but the output is a file: choose another --out", out=out)
    require(
        not out.is_file() or not folder, "{out} is a file, but the output is a folder: choose another --out", out=out
    )
    require(
        not out.is_dir() or not any(out.iterdir()) or marker is None or (out / marker).exists(),
        "{out} is a folder with other files, and --overwrite replaces only its own kind of output: choose another --out",
        out=out,
    )


@contextmanager
def drafted(out: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to. After a failure nothing is left, not even parent folders created for it."""
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
