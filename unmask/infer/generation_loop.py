"""Progress: texts from their prompts on, token by token; how the parts of generation become one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unmask.infer.beam_search import Search, first_search, follow
from unmask.infer.cuda_graph import recording, records, shapes
from unmask.infer.draw_token import Draft, draw, first_draft
from unmask.infer.next_token import NextToken, Windows
from unmask.infer.sampling import Beams, Greedy, Sampling

_UNSEEN = 16  # steps on a GPU between two looks at whether all texts have ended: each look waits for the device
_ROOM = 64  # a state has places for a multiple of this number of tokens, so that a recording serves again


def drafts(
    reader: NextToken, texts: list[list[int]], address: Tensor, how: Greedy | Sampling, tokens: int
) -> Iterator[Draft]:
    """The texts after each step; of every prompt as many as there are addresses for each."""
    samples = len(address) // len(texts)
    rows = [text for text in texts for _ in range(samples)]

    def start(state: Any, scores: Tensor) -> Draft:
        return first_draft(state, scores, address, tokens, rows, how.repetition_penalty)

    return _records(reader, texts, samples, tokens, how, start, partial(draw, how=how, end=reader.end))


def searches(reader: NextToken, texts: list[list[int]], how: Beams, tokens: int) -> Iterator[Search]:
    """The search after each step."""
    rows = [text for text in texts for _ in range(how.beams)]

    def start(state: Any, scores: Tensor) -> Search:
        return first_search(state, scores, how.beams, tokens, rows, how.repetition_penalty)

    return _records(reader, texts, how.beams, tokens, how, start, partial(follow, how=how, end=reader.end))


def last(reader: NextToken, found: Iterator[Any]) -> Any:
    """The record when nothing is left to do, or after all steps."""
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
    """What was written after each step. `start` makes the record of it; `choose` adds a token, given the scores of it."""
    context, rows = reader.model.length, [text for text in texts for _ in range(copies)]
    windows, network = Windows(rows, context), reader.model.system.backbone
    room = min(context, network.reach or context, -(-(max(map(len, texts)) + tokens) // _ROOM) * _ROOM)
    scores, state = reader.whole([text[-context:] for text in texts], room)  # a prompt is read once for all its copies
    row = torch.arange(len(texts), device=scores.device).repeat_interleave(copies)
    scores, state = scores[row], state if state is None or copies == 1 else state.chosen(row)

    def step(record: Any) -> Any:
        scores, state = reader.further(record.last, record.state)
        return choose(record.replace(state=state), scores)

    record = choose(start(state, scores), scores)
    yield record
    key, kept = (how, shapes(record)), reader.model.recordings
    with recording(step, key, kept) if records(reader.model.device) else nullcontext(step) as further:
        for number in range(1, tokens):
            if record.state is None or (windows.full(number) and not network.endless):
                scores, state = reader.whole(windows.of(record.rows[:, :number].tolist()), room)
                record = choose(record.replace(state=state), scores)
            else:
                record = further(record)
            yield record
