"""The cache: what was made from a user's text, in folders that are named by a hash of what they were made from.

If the text changes, the hash changes, and a new folder is made. A folder is complete when it exists: it is written under
a temporary name and renamed, so two processes may make the same folder at the same time.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unmask.errors import UserError
from unmask.version import __version__

# Raised with every change of the code that makes tokenizers or prepares text, so that nothing made by older code is used.
NUMBER = 1


def cache_folder() -> Path:
    """UNMASK_CACHE if it is set; otherwise `unmask` in XDG_CACHE_HOME, or in ~/.cache."""
    own, base = os.environ.get("UNMASK_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(own).expanduser().absolute()
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "unmask"


def state_of(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Path, size and time of change of each file, by which a change of the text is noticed."""
    found = [(str(file.resolve()), file.stat()) for file in files]
    return sorted((name, state.st_size, state.st_mtime_ns) for name, state in found)


def entry(group: str, **made_from: Any) -> Path:
    """The folder for what is made from these values by this code. It may not exist yet."""
    told = json.dumps(made_from | {"unmask": __version__, "number": NUMBER}, sort_keys=True, default=str)
    return cache_folder() / group / hashlib.sha256(told.encode()).hexdigest()[:16]


@contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """Yield a path to write to, which then becomes `folder`. If another process made `folder` first, its folder stays."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        draft.mkdir(parents=True)
    except OSError as error:
        raise UserError(
            "the cache folder {folder} cannot be written ({error}): set UNMASK_CACHE to a folder with permission to write, "
            "or use 'unmask tokenizer' and 'unmask prepare' and give 'unmask pretrain' the prepared folder",
            folder=cache_folder(),
            error=error.strerror,
        ) from None
    try:
        yield draft
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
