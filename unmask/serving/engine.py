"""The engine: one thread that runs the networks of all models.

Texts wait in the order in which they came. When the thread is free, the oldest text begins a batch, and waiting texts of the
same work and of near lengths join it: as many as make the batch read most for its time. So no text waits for more than the
texts before it. Generated texts grow by one token between two batches.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from unmask.errors import UserError
from unmask.serving.metrics import Metrics
from unmask.serving.trim import Trim

MOST_GROUPS = 4  # of texts that are generated; each has a cache, and texts that wait are generated together later
LOOKED_AT = 2_048  # waiting texts among which those of the nearest length are found


@dataclass(frozen=True)
class Work:
    """What is done with texts in one call. Texts of equal works may share a batch."""

    model: Hashable  # the served model
    name: str
    options: Hashable = ()
    run: Callable[[list[Any]], Sequence[Any]] = field(compare=False, default=list)  # one result for each value
    tokens: int = field(compare=False, default=512)  # most tokens in a batch, with padding
    fixed: int = field(compare=False, default=16)  # the time of a batch besides that of its tokens, in tokens
    begins: bool = False  # whether the call only begins to generate texts


@dataclass(eq=False)
class Group:
    """The texts of one request, and where their results go."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Any]]
    results: list[Any]
    missing: int

    def fail(self, error: BaseException) -> None:
        self.loop.call_soon_threadsafe(_set_error, self.future, error)

    def put(self, number: int, result: Any) -> None:
        self.results[number] = result
        self.missing -= 1
        if not self.missing:
            self.loop.call_soon_threadsafe(_set_result, self.future, self.results)


@dataclass(frozen=True, eq=False)
class Item:
    """One text that waits."""

    work: Work
    value: Any
    length: int  # in tokens
    group: Group
    number: int  # among the texts of its group
    came: float


Steps = Iterator[None]  # generation that is under way: each step adds a token to each of its texts


class Engine:
    """Runs batches and generation in a thread of its own."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._waiting: list[Item] = []
        self._steps: list[Steps] = []
        self._begun: list[Steps] = []  # generation that begins with the next round
        self._changed = threading.Condition()
        self._closing = False
        self._trim = Trim()
        self._thread = threading.Thread(target=self._loop, name="unmask-engine", daemon=True)

    @property
    def size(self) -> int:
        """The number of texts that wait."""
        return len(self._waiting)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish what was accepted, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    async def run(self, work: Work, values: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
        """The results of texts. If the caller is cancelled, those that still wait are dropped."""
        loop = asyncio.get_running_loop()
        group = Group(loop, loop.create_future(), [None] * len(values), len(values))
        now = time.monotonic()
        items = [
            Item(work, value, length, group, number, now)
            for number, (value, length) in enumerate(zip(values, lengths, strict=True))
        ]
        with self._changed:
            self._waiting += items
            self.metrics.waiting.set(len(self._waiting))
            self._changed.notify()
        try:
            return await group.future
        finally:
            if group.missing:
                self._drop(group)

    def begin(self, steps: Steps) -> None:
        """Begin to generate texts."""
        with self._changed:
            self._begun.append(steps)
            self._changed.notify()

    def _drop(self, group: Group) -> None:
        with self._changed:
            kept = [item for item in self._waiting if item.group is not group]
            self.metrics.dropped.inc(len(self._waiting) - len(kept))
            self._waiting = kept
            self.metrics.waiting.set(len(kept))

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._steps or self._begun or self._closing):
                    self._changed.wait()
                if self._closing and not (self._waiting or self._steps or self._begun):
                    return
                batch = self._next()
                self._steps += self._begun
                self._begun = []
            if batch:
                self._run(batch)
            self._trim()
            self._steps = [steps for steps in self._steps if next(steps, _END) is not _END]

    def _next(self) -> list[Item]:
        """Take the texts of the next batch out of the queue."""
        full = len(self._steps) + len(self._begun) >= MOST_GROUPS
        first = next((item for item in self._waiting if not (full and item.work.begins)), None)
        if first is None:
            return []
        others = islice((item for item in self._waiting if item is not first and item.work == first.work), LOOKED_AT)
        alike = sorted([first, *others], key=lambda item: item.length)
        begin, end = fullest([item.length for item in alike], alike.index(first), first.work.tokens, first.work.fixed)
        batch = alike[begin:end]
        taken = set(map(id, batch))
        self._waiting = [item for item in self._waiting if id(item) not in taken]
        self.metrics.waiting.set(len(self._waiting))
        self.metrics.texts.observe(len(batch))
        self.metrics.tokens.observe(len(batch) * max(item.length for item in batch))
        return batch

    def _run(self, batch: list[Item]) -> None:
        began = time.monotonic()
        for item in batch:
            self.metrics.queued.observe(began - item.came)
        try:
            results = batch[0].work.run([item.value for item in batch])
        except Exception as error:
            self._failed(batch, error)
            return
        self.metrics.computed.observe(time.monotonic() - began)
        self.metrics.read.inc(sum(item.length for item in batch))
        for item, result in zip(batch, results, strict=True):
            item.group.put(item.number, result)

    def _failed(self, batch: list[Item], error: Exception) -> None:
        """A mistake in one text must not fail the others of the batch."""
        if len(batch) > 1 and isinstance(error, UserError):
            for item in batch:
                self._run([item])
            return
        if not isinstance(error, UserError):
            traceback.print_exception(error)
        for item in batch:
            item.group.fail(error)


def fullest(lengths: Sequence[int], at: int, most: int, fixed: int) -> tuple[int, int]:
    """Where the best batch around the text `at` begins and ends: the one that reads most tokens for its time, padding and the
    fixed time of a batch included. `lengths`: in order. `most`: tokens of a batch; a single text may have more."""
    size = np.asarray(lengths, np.int64)
    around = max(1, most // max(1, lengths[at]))  # more texts do not fit into a batch with this one
    begins = np.arange(max(0, at + 1 - around), at + 1)[:, None]
    ends = np.arange(at + 1, min(len(size), at + around) + 1)
    total = np.concatenate(([0], np.cumsum(size)))
    padded = (ends - begins) * size[ends - 1]
    value = (total[ends] - total[begins]) / (padded + fixed)
    value[(padded > most) & (ends - begins > 1)] = -1.0
    row, column = np.unravel_index(int(value.argmax()), value.shape)
    return int(begins[row, 0]), int(ends[column])


_END = object()


def _set_result(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
