"""Run a call in the background, so that its result is ready when it is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begun(work: Callable[..., T], *given: object) -> Future[T]:
    """Start a call in its own thread; returns the future of its result.

    There is no thread pool. An unused pool must be shut down, and that takes locks. The garbage collector may do it in any
    thread at any time, even in a thread that already holds these locks."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(*given))
        except BaseException as error:  # raised again by `result()`
            future.set_exception(error)

    threading.Thread(target=run, name="ahead").start()
    return future
