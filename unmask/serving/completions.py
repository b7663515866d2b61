"""OpenAI's /v1/completions: texts that are continued, at once or as a stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from unmask.errors import require
from unmask.infer.generate import begun
from unmask.infer.generation_loop import reader_of
from unmask.infer.sampling import Greedy, Sampling
from unmask.serving.call import Call, Route, Stream
from unmask.serving.models import Served
from unmask.serving.prompt_chances import prompt_chances
from unmask.serving.refused import Refused
from unmask.serving.service import Input, Service, apart, as_texts
from unmask.serving.writing import Chances, Piece, Row, write
from unmask.text import Tokenizer

MOST_CHANCES = 20  # most likely tokens that can be asked for at each token
MOST_STOPS = 16


@dataclass(frozen=True)
class StreamOptions:
    """What else a stream holds."""

    include_usage: bool = False


@dataclass(frozen=True)
class Completions:
    """The body of /v1/completions."""

    model: str
    prompt: Input = ""
    max_tokens: int = 16
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None  # as in vLLM: draw among this number of the most likely tokens
    repetition_penalty: float = 1.0  # as in vLLM
    n: int = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: int | None = None
    echo: bool = False
    stop: str | tuple[str, ...] = ()
    seed: int = 0
    truncate: bool = False  # cut a prompt that is too long: the end is continued, the beginning is a source
    best_of: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    user: str = ""  # read by no one

    def __post_init__(self) -> None:
        require(self.max_tokens >= 0, "max_tokens must be 0 or more, got {value}", value=self.max_tokens)
        require(
            self.max_tokens > 0 or self.echo,
            "max_tokens=0 writes nothing: give 1 or more, or echo=true for the probabilities of the prompt",
        )
        require(1 <= self.n <= 128, "n must be between 1 and 128, got {value}", value=self.n)
        require(
            self.n == 1 or self.temperature > 0,
            "temperature 0 always gives the same text, got n={n}: set n to 1 or a temperature over 0",
            n=self.n,
        )
        require(
            self.logprobs is None or 0 <= self.logprobs <= MOST_CHANCES,
            "logprobs must be between 0 and {most}, got {value}",
            most=MOST_CHANCES,
            value=self.logprobs,
        )
        require(self.seed >= 0, "seed must be 0 or more, got {value}", value=self.seed)
        require(
            all(self.stops) and len(self.stops) <= MOST_STOPS,
            "stop must be up to {most} texts that are not empty, got {value!r:.60}",
            most=MOST_STOPS,
            value=self.stop,
        )
        for name, only in {"best_of": 1, "presence_penalty": 0, "frequency_penalty": 0}.items():
            given = getattr(self, name)
            require(given == only, "{name} is not supported, got {given}: leave it out", name=name, given=given)
        require(
            self.stream_options is None or self.stream,
            "stream_options has an effect only with stream=true: leave it out",
        )

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else self.stop

    @property
    def how(self) -> Greedy | Sampling:
        """How tokens are chosen. Temperature 0 is the most likely token."""
        if self.temperature == 0:
            require(
                self.top_p == 1 and self.top_k is None,
                "temperature 0 takes the most likely token, so top_p and top_k have no effect: leave them out",
            )
            return Greedy(self.repetition_penalty)
        return Sampling(self.temperature, self.top_k, None if self.top_p == 1 else self.top_p, self.repetition_penalty)


async def completions(call: Call) -> Any:
    """Continue prompts. A stream and a plain answer are made of the same pieces."""
    body: Completions = call.body
    service, served = call.service, call.service.models.able("text-generation", body.model)
    how, prompts = body.how, await _prompts(service, served, body)
    rows = _rows(body, prompts)
    service.check_texts(len(rows))
    before = await _before(service, served, body, rows)
    pieces = _pieces(service, served, how, rows if body.max_tokens else [])
    about = {"id": f"cmpl-{call.id}", "created": int(time.time()), "model": served.name, "object": "text_completion"}
    if body.stream:
        return Stream(_events(served, body, about, rows, before, pieces))
    texts = [[piece] for piece in before]
    async for number, piece in pieces:
        texts[number].append(piece)
    choices = [_choice(served, body, number, several) for number, several in enumerate(texts)]
    return about | {"choices": choices, "usage": _usage(body, rows)}


async def _events(
    served: Served, body: Completions, about: dict[str, Any], rows: list[Row], before: list[Piece],
    pieces: AsyncIterator[tuple[int, Piece]],
) -> AsyncIterator[dict[str, Any]]:  # fmt: skip
    for number, piece in enumerate(before):
        if piece.text or piece.finish:
            yield about | {"choices": [_choice(served, body, number, [piece])]}
    async for number, piece in pieces:
        yield about | {"choices": [_choice(served, body, number, [piece])]}
    if body.stream_options is not None and body.stream_options.include_usage:
        yield about | {"choices": [], "usage": _usage(body, rows)}


async def _prompts(service: Service, served: Served, body: Completions) -> list[tuple[str, list[int], list[int]]]:
    """For each prompt its text, all tokens that are read, and the tokens of the text itself."""
    given = as_texts(body.prompt)
    service.check_texts(len(given))
    if body.max_tokens > service.limits.generated:
        most = service.limits.generated
        raise Refused(422, f"max_tokens may be {most:,}, got {body.max_tokens:,}: ask for fewer", limit="generated")
    tokenizer = served.model.tokenizer
    size = sum(map(len, given)) if isinstance(given[0], str) else 0
    found = await apart(
        lambda: [
            (one, _encoded(tokenizer, one)) if isinstance(one, str) else (tokenizer.decode(one), list(one))
            for one in given
        ],
        size,
    )
    wrong = next((i for _, ids in found for i in ids if not 0 <= i < tokenizer.vocabulary.size), None)
    require(
        wrong is None,
        "token ids must be between 0 and {last}, got {wrong}: the vocabulary has {size} tokens",
        last=tokenizer.vocabulary.size - 1,
        wrong=wrong,
        size=tokenizer.vocabulary.size,
    )
    return [_read(service, served, body, text, ids) for text, ids in found]


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    """As `Tokenizer.encode`, which would let no other thread run until it has finished."""
    return tokenizer.encode_many([text if tokenizer.of_words else tokenizer.with_mask(text)])[0].ids


def _read(
    service: Service, served: Served, body: Completions, text: str, ids: list[int]
) -> tuple[str, list[int], list[int]]:
    """A prompt as it is read: continued, or the source of another text. One that is too long is cut or refused."""
    reader, most = reader_of(served.model), service.limits.tokens
    if reader.second:
        require(bool(ids), "the prompt is empty, and this model writes a text from it: give a text")
        require(body.max_tokens > 0, "max_tokens=0 is for a prompt that is continued, and this model writes from it")
        read, room = reader.source(ids[:most], body.max_tokens)
        _check_length(len(ids), min(room, most or room), body.truncate)
        return text, read, []
    read, room = begun(served.model, ids), min(served.model.length, most or served.model.length)
    _check_length(len(read), room, body.truncate)
    return text, read[-room:], ids


def _check_length(length: int, room: int, truncate: bool) -> None:
    if length > room and not truncate:
        raise Refused(
            422,
            f"a prompt may have {room:,} tokens, got {length:,}: send a shorter one, or cut it with truncate=true",
            limit="tokens",
        )


def _rows(body: Completions, prompts: list[tuple[str, list[int], list[int]]]) -> list[Row]:
    """The texts of a request: all samples of the first prompt, then of the second, and so on."""
    pieces: asyncio.Queue[Any] = asyncio.Queue()
    return [
        Row(
            prompt=text, ids=ids, before=own, tokens=body.max_tokens, seed=body.seed, sample=number % body.n,
            number=number, pieces=pieces, stops=body.stops, chances=body.logprobs,
        )
        for number, (text, ids, own) in enumerate(one for one in prompts for _ in range(body.n))
    ]  # fmt: skip


async def _before(service: Service, served: Served, body: Completions, rows: list[Row]) -> list[Piece]:
    """What stands before the new text of each row: with echo the prompt, and the probabilities of its tokens."""
    if not body.echo:
        return [Piece("")] * len(rows)
    finish = None if body.max_tokens else "length"
    tokenizer = served.model.tokenizer
    for row in rows:
        row.offset = len(tokenizer.decode(row.before))
    if body.logprobs is None or not any(
        row.before for row in rows
    ):  # a text that is written from a source does not begin with it
        return [Piece(tokenizer.decode(row.before), (), finish) for row in rows]
    count = body.logprobs

    def run(values: list[Any]) -> list[list[Chances]]:
        return [prompt_chances(served.model, row.ids, row.before, count) for row in values]

    found = await service.run(served, "prompt", run, rows, [len(row.ids) for row in rows], count)
    return [
        Piece(tokenizer.decode(row.before), tuple(_placed(served, row.before, several)), finish)
        for row, several in zip(rows, found, strict=True)
    ]


def _placed(served: Served, ids: list[int], chances: list[Chances]) -> list[tuple[int, int, Chances]]:
    """The tokens of a prompt with their places in its text."""
    decode = served.model.tokenizer.decode
    return [(token, len(decode(ids[:at])), one) for at, (token, one) in enumerate(zip(ids, chances, strict=True))]


async def _pieces(
    service: Service, served: Served, how: Greedy | Sampling, rows: list[Row]
) -> AsyncIterator[tuple[int, Piece]]:
    """The pieces of all texts, in the order in which they are written. If the caller leaves, writing ends."""
    if not rows:
        return
    lengths = [min(len(row.ids) + row.tokens, served.model.length) for row in rows]

    try:
        begin = partial(write, served, how, metrics=service.metrics)
        await service.begin(served, begin, rows, lengths, (how, rows[0].chances is not None))
        going = len(rows)
        while going:
            number, piece = await rows[0].pieces.get()
            if isinstance(piece, Exception):
                raise piece
            going -= piece.finish is not None
            yield number, piece
    finally:
        for row in rows:
            row.left = True


def _choice(served: Served, body: Completions, number: int, pieces: list[Piece]) -> dict[str, Any]:
    tokens = [token for piece in pieces for token in piece.tokens]
    return {
        "index": number, "text": "".join(piece.text for piece in pieces),
        "logprobs": None if body.logprobs is None else _chances(served, tokens),
        "finish_reason": next((piece.finish for piece in reversed(pieces) if piece.finish), None),
    }  # fmt: skip


def _chances(served: Served, tokens: list[tuple[int, int, Chances | None]]) -> dict[str, Any]:
    readable = served.model.tokenizer.readable
    own: list[float | None] = []
    most: list[dict[str, float] | None] = []
    for token, _, chances in tokens:
        value, others = chances or (None, [])
        own.append(value)
        named = {readable(other): log for other, log in others} | (
            {readable(token): value} if value is not None else {}
        )
        most.append(named or None)
    return {
        "tokens": [readable(token) for token, _, _ in tokens], "token_logprobs": own, "top_logprobs": most,
        "text_offset": [place for _, place, _ in tokens],
    }  # fmt: skip


def _usage(body: Completions, rows: list[Row]) -> dict[str, int]:
    read, written = sum(len(row.ids) for row in rows[:: body.n]), sum(len(row.written) for row in rows)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


MEDIA = ("application/json", "text/event-stream")
ROUTES = (
    Route("/v1/completions", completions, "Continue a text, at once or as a stream", Completions, "OpenAI", MEDIA),
)
