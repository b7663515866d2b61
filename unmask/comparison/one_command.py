"""A lock: one command at a time works in a folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unmask.errors import UserError

LOCK = ".lock"


@contextmanager
def one_command(folder: Path, verb: str) -> Iterator[None]:
    """Refuse a second command in the same folder. If the first is killed, the lock is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                "another 'unmask {verb}' works in {folder}: wait for it, or stop it", verb=verb, folder=folder
            ) from None
        yield
