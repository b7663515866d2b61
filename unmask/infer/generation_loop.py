"""The generation loop: continue texts from their prompts, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unmask.infer.beam_search import Search, first_search, follow
from unmask.infer.cuda_graph import recording, records
from unmask.infer.draw_token import Draft, draw, first_draft
from unmask.infer.next_token import NextToken, Windows
from unmask.infer.sampling import Beams, Greedy, Sampling
from unmask.tree import rows_of, signature

_UNSEEN = 16  # GPU steps between two checks whether all texts have ended, because each check waits for the device
_ROOM = 64  # the length of a cache is a multiple of this, so that a recording can be used again


def drafts(
    reader: NextToken, texts: list[list[int]], address: Tensor, how: Greedy | Sampling, tokens: int, *,
    keep: bool = False,
) -> Iterator[Draft]:  # fmt: skip
    """The texts after each step. A prompt has as many texts as there are addresses per prompt. `keep`: each draft has the
    scores of its last tokens."""
    samples = len(address) // len(texts)
    rows = [text for text in reader.repeatable(texts) for _ in range(samples)]

    def start(state: Any, scores: Tensor) -> Draft:
        return first_draft(state, scores, address, tokens, rows, how, keep=keep)

    return _records(reader, texts, samples, tokens, how, start, partial(draw, how=how, end=reader.end))


def searches(reader: NextToken, texts: list[list[int]], how: Beams, tokens: int) -> Iterator[Search]:
    """The search after each step."""
    rows = [text for text in reader.repeatable(texts) for _ in range(how.beams)]

    def start(state: Any, scores: Tensor) -> Search:
        return first_search(state, scores, how, tokens, rows)

    return _records(reader, texts, how.beams, tokens, how, start, partial(follow, how=how, end=reader.end))


def last(reader: NextToken, found: Iterator[Any]) -> Any:
    """The record after all texts have ended, or after all steps."""
    every = _UNSEEN if records(reader.model.device) else 1
    record = None
    for number, record in enumerate(found, 1):
        if number % every == 0 and not bool(record.going):
            break
    return record


def _records(
    reader: NextToken, texts: list[list[int]], copies: int, tokens: int, how: Any, start: Callable[[Any, Tensor], Any],
    choose: Callable[[Any, Tensor], Any],
) -> Iterator[Any]:  # fmt: skip
    """The record (Draft or Search) after each step. `start` makes the first record; `choose` adds a token, given its scores."""
    context, rows = reader.model.length, [text for text in texts for _ in range(copies)]
    windows, network = Windows(rows, context), reader.model.system.backbone
    room = min(context, network.reach or context, -(-(max(map(len, texts)) + tokens) // _ROOM) * _ROOM)
    scores, state = reader.whole([text[-context:] for text in texts], room)  # each prompt is read once, then copied
    row = torch.arange(len(texts), device=scores.device).repeat_interleave(copies)
    scores, state = scores[row], state if copies == 1 else rows_of(state, row)

    def step(record: Any) -> Any:
        scores, state = reader.further(record.last, record.state)
        return choose(record.replace(state=state), scores)

    record = choose(start(state, scores), scores)
    yield record
    key, kept = (how, signature(record)), reader.model.recordings
    with recording(step, key, kept) if records(reader.model.device) else nullcontext(step) as further:
        for number in range(1, tokens):
            if record.state is None or (windows.full(number) and not network.endless):
                scores, state = reader.whole(windows.of(record.rows[:, :number].tolist()), room, number)
                record = choose(record.replace(state=state), scores)
            else:
                record = further(record)
            yield record
