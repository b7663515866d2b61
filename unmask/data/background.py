"""Work that is done in the background, so that its result is ready when it is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begun(work: Callable[..., T], *given: object) -> Future[T]:
    """Start a call in its own thread; returns the future of its result.

    There is no pool. A pool that is no longer used must be shut down, and that takes locks. The garbage collector would do
    it in any thread at any time, also in a thread that holds these locks already."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(*given))
        except BaseException as error:  # is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, name="ahead").start()
    return future
