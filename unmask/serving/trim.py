"""Give memory back: glibc keeps what many small answers leave between their pieces, and the process would grow for hours."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 10.0  # between two trims; one takes a few milliseconds


class Trim:
    """Called often; it gives memory back from time to time. Does nothing where the C library has no malloc_trim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.last, self.trim = clock, clock(), _malloc_trim()

    def __call__(self) -> None:
        if self.trim is not None and self.clock() - self.last > SECONDS:
            self.trim(0)
            self.last = self.clock()


def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return found
