"""The service: its models, its engine, its limits. The routes ask it to run texts through a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unmask import infer
from unmask.errors import require
from unmask.infer.passes import tokens_at_once
from unmask.infer.text_batches import room_of
from unmask.serving.engine import Engine, Work
from unmask.serving.limits import Limits
from unmask.serving.metrics import Metrics
from unmask.serving.models import Models, Served
from unmask.serving.refused import Refused
from unmask.text.encode import encode_ids

Input = str | tuple[str, ...] | tuple[int, ...] | tuple[tuple[int, ...], ...]  # a text, texts, or their token ids
SMALL = 4_000  # characters that are tokenised at once; more are tokenised in a thread, so that other requests go on


@dataclass
class Service:
    """What the routes share."""

    models: Models
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    engine: Engine = field(init=False)
    running: int = 0  # requests that are answered now

    def __post_init__(self) -> None:
        self.engine = Engine(self.metrics)

    def check_texts(self, count: int) -> None:
        """Refuse a request with too many texts, and any request while too many wait."""
        require(count >= 1, "there are no texts: give at least one")
        if count > self.limits.texts:
            raise Refused(
                413, f"a request may hold {self.limits.texts:,} texts, got {count:,}: send fewer", limit="texts"
            )
        if self.engine.size + count > self.limits.queue:
            raise busy("queue", f"{self.engine.size:,} texts wait, and at most {self.limits.queue:,} may")

    async def tokens(self, served: Served, texts: Sequence[Any], *, truncate: bool) -> list[np.ndarray]:
        """The token ids of texts, or the ids that were given; cut to what the model reads, or refused."""
        self.check_texts(len(texts))
        if isinstance(texts[0], str):
            ids = await apart(lambda: _encoded(served, texts), sum(map(len, texts)))
        else:
            ids = [np.asarray(one, np.int64) for one in texts]
            _check_ids(served, ids)
        room = min(room_of(served.model), self.limits.tokens or room_of(served.model))
        empty = next((number for number, one in enumerate(ids, 1) if not len(one)), None)
        require(
            empty is None,
            "text number {empty} of {count} is empty: give a text that is not only white space",
            empty=empty,
            count=len(ids),
        )
        longest = max(map(len, ids))
        if longest > room and not truncate:
            raise Refused(
                422,
                f"a text may have {room:,} tokens, got {longest:,}: send a shorter one, or ask to cut it with truncate=true",
                limit="tokens",
            )
        return [one[:room] for one in ids]

    async def run(
        self, served: Served, name: str, run: Callable[[list[Any]], Sequence[Any]], values: Sequence[Any],
        lengths: Sequence[int], options: Any = (),
    ) -> list[Any]:  # fmt: skip
        """Run texts through a model, in batches with those of other requests."""
        work = Work(served, name, options, run, tokens_at_once(served.model))
        return await self.engine.run(work, values, lengths)

    async def embed(
        self, served: Served, ids: Sequence[np.ndarray], *, dims: int | None = None, pool: Any = None
    ) -> np.ndarray:
        """One vector for each text: those of `Model.embed`."""
        frame = served.model.length - room_of(served.model)

        def run(values: list[Any]) -> Sequence[Any]:
            return list(infer.embed(served.model, values, dims=dims, pool=pool).value)

        return np.stack(await self.run(served, "embed", run, ids, [len(one) + frame for one in ids], (dims, pool)))


def busy(limit: str, words: str, seconds: int = 1) -> Refused:
    """The answer to a request that must come again later."""
    return Refused(429, f"{words}: try again in {seconds} s", limit=limit, headers={"Retry-After": str(seconds)})


def as_texts(given: Input) -> tuple[Any, ...]:
    """A list of texts or of token ids, from one of them or several."""
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return (given,)
    return given


async def apart(function: Callable[[], Any], size: int) -> Any:
    """The result of a function; in a thread if its input is large."""
    return function() if size <= SMALL else await asyncio.to_thread(function)


def _encoded(served: Served, texts: Sequence[str]) -> list[np.ndarray]:
    ids, counts = encode_ids(texts, served.model.tokenizer)
    return np.split(ids, np.cumsum(counts)[:-1])


def _check_ids(served: Served, ids: Sequence[np.ndarray]) -> None:
    size = served.model.tokenizer.vocabulary.size
    wrong = next((int(i) for one in ids for i in one if not 0 <= i < size), None)
    require(
        wrong is None,
        "token ids must be between 0 and {last}, got {wrong}: the vocabulary has {size} tokens",
        last=size - 1,
        wrong=wrong,
        size=size,
    )
