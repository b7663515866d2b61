"""Ahead: work that is done in the background, so that it is ready when it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begun(work: Callable[..., T], *given: object) -> Future[T]:
    """What becomes of a call, made in a thread of its own.

    No pool: one that is forgotten must be shut down, which takes locks; and what is forgotten is found by the garbage
    collector, in any thread and at any time, even where that thread holds the very locks."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(*given))
        except BaseException as error:  # for the one who asks
            future.set_exception(error)

    threading.Thread(target=run, name="ahead").start()
    return future
