"""Give memory back: the C library keeps what passes of many sizes leave between their pieces, and the process would grow."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 1.0  # between two looks
GROWN: Final = 64_000_000  # bytes over what was left after the last time; less is what the next pass needs again
_SIZE: Final = Path("/proc/self/statm")


class Trim:
    """Called often; it gives memory back when the process has grown. Does nothing where the C library has no malloc_trim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, resident: Callable[[], int] | None = None) -> None:
        self.clock, self.last, self.trim, self.left = clock, clock(), _malloc_trim(), 0
        self.resident = resident or _resident

    def __call__(self) -> None:
        if self.trim is None or self.clock() - self.last < SECONDS:
            return
        self.last = self.clock()
        if self.resident() > self.left + GROWN:
            self.trim(0)
            self.left = self.resident()


def _resident() -> int:
    """Bytes of this process that are in memory."""
    return int(_SIZE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return found if _SIZE.exists() else None
