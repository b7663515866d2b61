"""Work on all cores: a function is called in worker processes, and the results come in order."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from unmask.errors import require

LOOKS = 0.5  # seconds between looks at the parent
Item = TypeVar("Item")
Result = TypeVar("Result")


def used_workers(workers: int | None) -> int:
    """The number of worker processes; None: one per core."""
    require(workers is None or workers >= 1, "--workers must be 1 or more, got {workers}", workers=workers)
    return workers or os.cpu_count() or 1


def in_workers(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    *,
    start: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """`work(item)` for each item. The workers are never far ahead of the caller, so memory is bounded.

    `start`: called once in each worker, with `given`."""
    # forked workers share the memory of the parent, such as a lexicon; they must not use torch
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(workers, context, _begin, (os.getpid(), start, given)) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _begin(parent: int, start: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    """Begin a worker. If its parent is killed, it ends too: otherwise it would wait for work forever."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if start is not None:
        start(*given)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOKS)
    os._exit(1)
