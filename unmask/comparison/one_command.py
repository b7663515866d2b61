"""A lock: one command at a time works in a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unmask.errors import UserError

LOCK = ".lock"
_held: set[int] = set()  # the file descriptors of locks


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
        _held.add(held.fileno())
        try:
            yield
        finally:
            _held.discard(held.fileno())


def _let_go() -> None:
    """A forked process, such as a worker that prepares text, must not keep a lock when its parent is killed."""
    for number in _held:
        os.close(number)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
