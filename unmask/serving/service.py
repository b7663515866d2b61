"""The service: its models, its engine, its limits. The routes ask it to run texts through a model."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unmask import infer
from unmask.axes import Task
from unmask.data.examples import Laid
from unmask.errors import UserError, require
from unmask.infer.passes import PASS, fixed_tokens, tokens_at_once
from unmask.serving.engine import Engine, Steps, Work
from unmask.serving.indexes import Indexed
from unmask.serving.limits import Limits
from unmask.serving.metrics import Metrics
from unmask.serving.models import Models, Served
from unmask.serving.refused import Refused
from unmask.text.encode import encode_ids

Input = str | tuple[str, ...] | tuple[int, ...] | tuple[tuple[int, ...], ...]  # a text, texts, or their token ids
WINDOWS = 16  # a task that reads a long text in windows may get this many times what the model reads at once
SMALL = 4_000  # characters that are tokenised at once; more are tokenised in a thread, so that other requests go on


@dataclass
class Service:
    """What the routes share."""

    models: Models
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    indexes: Mapping[str, Indexed] = field(default_factory=dict)
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

    async def tokens(
        self, served: Served, texts: Sequence[Any], *, truncate: bool | None, cut: str = "right"
    ) -> list[np.ndarray]:
        """The token ids of texts, or the ids that were given; cut to what the model reads, or refused. `truncate` None: the
        request cannot ask to cut. `cut`: on which side."""
        self.check_texts(len(texts))
        if isinstance(texts[0], str):
            ids = await apart(lambda: _encoded(served, texts), sum(map(len, texts)))
        else:
            ids = [np.asarray(one, np.int64) for one in texts]
            _check_ids(served, ids)
        room = min(served.room, self.limits.tokens or served.room)
        empty = next((number for number, one in enumerate(ids, 1) if not len(one)), None)
        require(
            empty is None,
            "text number {empty} of {count} is empty: give a text that is not only white space",
            empty=empty,
            count=len(ids),
        )
        longest = max(map(len, ids))
        if longest > room and not truncate:
            raise _too_long(room, longest, can_cut=truncate is not None)
        return [one[-room:] if cut.lower() == "left" else one[:room] for one in ids]

    async def run(
        self, served: Served, name: str, run: Callable[[list[Any]], Sequence[Any]], values: Sequence[Any],
        lengths: Sequence[int], options: Any = (),
    ) -> list[Any]:  # fmt: skip
        """Run texts through a model, in batches with those of other requests."""
        work = Work(served, name, options, run, self.batch_tokens(served), fixed_tokens(served.model))
        return await self.engine.run(work, values, lengths)

    async def begin(
        self,
        served: Served,
        begin: Callable[[list[Any]], Steps],
        rows: Sequence[Any],
        lengths: Sequence[int],
        options: Any,
    ) -> None:
        """Begin to generate texts, together with those of other requests. It returns when they have begun."""

        def run(values: list[Any]) -> Sequence[Any]:
            self.engine.begin(begin(values))
            return [None] * len(values)

        await self.engine.run(Work(served, "generate", options, run, PASS, PASS, begins=True), rows, lengths)

    def batch_tokens(self, served: Served) -> int:
        """The most tokens of a batch, with padding."""
        return tokens_at_once(served.model)

    async def embed(
        self, served: Served, ids: Sequence[np.ndarray], *, dims: int | None = None, pool: Any = None
    ) -> np.ndarray:
        """One vector for each text: those of `Model.embed`."""
        frame = served.model.length - served.room

        def run(values: list[Any]) -> Sequence[Any]:
            return list(infer.embed(served.model, values, dims=dims, pool=pool).value)

        return np.stack(await self.run(served, "embed", run, ids, [len(one) + frame for one in ids], (dims, pool)))

    async def answer(self, served: Served, values: Sequence[Any], *, truncate: bool = False) -> list[Any]:
        """The answers to examples of the model's task: those of `Model.predict`."""
        self.check_texts(len(values))
        task = infer.task_of_model(served.model)
        examples, laid = await apart(lambda: _laid_out(task, values), _size(values))
        lengths = await self._lengths(served, laid, truncate=truncate)

        def run(some: list[Any]) -> Sequence[Any]:
            return infer.answer(served.model, some).answers

        if not task.compares:
            return await self.run(served, "answer", run, examples, lengths)
        whole = await self.run(served, "answers", lambda one: list(map(run, one)), [examples], [sum(lengths)])
        return list(whole[0])

    async def _lengths(self, served: Served, laid: Laid, *, truncate: bool) -> list[int]:
        """The tokens that each example has in all its readings. Texts that are too long are refused, or cut."""
        readings = [one if isinstance(one, tuple) else (one,) for one in laid.readings]
        texts = [text for several in readings for one in several for text in (one.a, one.b) if text is not None]
        counts = iter(await apart(lambda: encode_ids(texts, served.model.tokenizer)[1].tolist(), sum(map(len, texts))))
        sizes = [
            [3 + sum(next(counts) for text in (one.a, one.b) if text is not None) for one in several]
            for several in readings
        ]
        most = self.limits.tokens or served.model.length * (1 if laid.stride is None else WINDOWS)
        longest = max(max(several) for several in sizes)
        if longest > most and (laid.stride is not None or not truncate):
            raise _too_long(most, longest, can_cut=laid.stride is None)
        return [min(sum(several), most * len(several)) for several in sizes]


def _too_long(most: int, got: int, *, can_cut: bool) -> Refused:
    cut = ", or ask to cut it with truncate=true" if can_cut else ""
    return Refused(422, f"a text may have {most:,} tokens, got {got:,}: send a shorter one{cut}", limit="tokens")


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


def _size(values: Sequence[Any]) -> int:
    """Characters of examples; an object is read from a file, which takes time at any size."""
    if isinstance(values[0], dict):
        return SMALL + 1
    return sum(
        len(text) for one in values for text in ((one,) if isinstance(one, str) else one) if isinstance(text, str)
    )


def _laid_out(task: Task, values: Sequence[Any]) -> tuple[list[Any], Laid]:
    """Examples, and the texts that they consist of."""
    examples = _rows(task, values) if isinstance(values[0], dict) else _given(task, values)
    return examples, task.lay_out(examples, labelled=False)


def _given(task: Task, values: Sequence[Any]) -> list[Any]:
    """Examples from texts and lists of texts."""
    wrong = next((value for value in values if not _is_text(value)), None)
    require(wrong is None, "an example must be a text or a list of texts, got {wrong!r:.60}", wrong=wrong)
    return task.given(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(one, str) for one in value))


def _rows(task: Task, values: Sequence[Any]) -> list[Any]:
    """Examples from objects that have the columns of the task's files."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "examples.jsonl"
        file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
        try:
            return task.read(file, None, labelled=False)[0]
        except UserError as error:
            raise UserError(str(error).replace(str(file), "examples")) from None


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
