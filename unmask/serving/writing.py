"""Generation for requests: texts of several requests grow together, and each one ends by its own rules."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from unmask.infer.decode_text import whole
from unmask.infer.draw_token import addresses
from unmask.infer.generation_loop import drafts, reader_of
from unmask.infer.sampling import Greedy, Sampling
from unmask.serving.metrics import Metrics
from unmask.serving.models import Served

Chances = tuple[float | None, list[tuple[int, float]]]  # the log probability of a token, and the most likely tokens


@dataclass(frozen=True)
class Piece:
    """What a text has more than before."""

    text: str
    tokens: tuple[tuple[int, int, Chances | None], ...] = ()  # token, where it begins in the text, its probabilities
    finish: str | None = None  # why the text ended: stop or length; None: it goes on


@dataclass(eq=False)
class Row:
    """One text that is generated."""

    prompt: str
    ids: list[int]  # all that the model reads before the text
    before: list[int]  # the tokens of the prompt itself
    tokens: int  # most new tokens
    seed: int
    sample: int  # number among the texts of its prompt
    number: int  # number among the texts of its request
    pieces: asyncio.Queue[tuple[int, Piece | Exception]]  # where its pieces go, with its number
    offset: int = 0  # length of the text that is shown before it
    stops: tuple[str, ...] = ()  # the text ends before the first of these
    chances: int | None = None  # number of most likely tokens that are given with each token; None: no probabilities
    came: float = field(default_factory=time.monotonic)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    left: bool = False  # whether the client left
    written: list[int] = field(default_factory=list)
    done: bool = False
    _shown: int = 0
    _held: list[tuple[int, int, Chances | None]] = field(default_factory=list)  # tokens of text that is not shown yet

    def put(self, served: Served, token: int, ended: bool, chances: Chances | None) -> None:
        """Add a token. What cannot be the beginning of a stop is shown."""
        tokenizer = served.model.tokenizer
        start = len(tokenizer.decode(self.before))
        if not ended:
            at = len(whole(tokenizer, self.before, self.written)) - start
            self.written.append(token)
            self._held.append((token, at, chances))
        text = whole(tokenizer, self.before, self.written)[start:]
        found = [place for place in (text.find(stop) for stop in self.stops) if place >= 0]
        if found:
            self._show(text[: min(found)], "stop", cut=True)
        elif ended or len(self.written) >= self.tokens:
            self._show(text, "stop" if ended else "length")
        else:
            self._show(text[: len(text) - _overlap(text, self.stops)], None)

    def fail(self, error: Exception) -> None:
        self.done = True
        self._send(error)

    def _show(self, text: str, finish: str | None, *, cut: bool = False) -> None:
        """Send what is new in the text. `cut`: the text was cut before a stop, so its last tokens are left out."""
        whole = finish is not None and not cut
        shown = [one for one in self._held if whole or one[1] < len(text)]
        self._held = self._held[len(shown) :]
        self.done = finish is not None
        if text[self._shown :] or shown or finish:
            placed = tuple((token, place + self.offset, chances) for token, place, chances in shown)
            self._send(Piece(text[self._shown :], placed, finish))
        self._shown = max(self._shown, len(text))

    def _send(self, piece: Piece | Exception) -> None:
        self.loop.call_soon_threadsafe(self.pieces.put_nowait, (self.number, piece))


def _overlap(text: str, stops: Sequence[str]) -> int:
    """The length of the longest end of a text that is the beginning of a stop."""
    lengths = (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
    return max(lengths, default=0)


def write(served: Served, how: Greedy | Sampling, rows: list[Row], *, metrics: Metrics) -> Iterator[None]:
    """Generate texts together, a token of each in every step. It ends when all have ended or their clients left."""
    try:
        keep = any(row.chances is not None for row in rows)
        reader, most = reader_of(served.model), max(row.tokens for row in rows)
        address = torch.cat([addresses([row.prompt], row.sample + 1, row.seed)[row.sample :] for row in rows])
        for draft in drafts(reader, [row.ids for row in rows], address, how, most, keep=keep):
            _put(served, rows, draft, metrics)
            if all(row.done or row.left for row in rows):
                return
            yield
    except Exception as error:
        traceback.print_exception(error)
        for row in rows:
            if not row.done:
                row.fail(error)


def _put(served: Served, rows: list[Row], draft: Any, metrics: Metrics) -> None:
    tokens, ended = draft.last.tolist(), draft.ended.tolist()
    logs = None if draft.scores is None else draft.scores.log_softmax(-1)
    for number, row in enumerate(rows):
        if row.done or row.left:
            continue
        metrics.written.inc()
        if not row.written:
            metrics.first.observe(time.monotonic() - row.came)
        found = None
        if row.chances is not None and logs is not None and not ended[number]:
            found = chances_of(logs[number], tokens[number], row.chances)
        row.put(served, tokens[number], ended[number], found)


def chances_of(logs: torch.Tensor, token: int, count: int) -> Chances:
    """The log probability of a token, and the most likely tokens with theirs. `logs`: V."""
    values, ids = logs.topk(min(count, len(logs))) if count else (logs[:0], logs[:0])
    own = float(logs[token])
    most = [(int(i), float(v)) for i, v in zip(ids.tolist(), values.tolist(), strict=True) if v > -float("inf")]
    return own if own > -float("inf") else None, most
