"""The generation loop: continue texts from their prompts, token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unmask.axes import gives_of
from unmask.errors import require
from unmask.infer.beam_search import Search, first_search, follow
from unmask.infer.cuda_graph import recording, records
from unmask.infer.decoder_token import DecoderToken
from unmask.infer.draw_token import Draft, draw, first_draft
from unmask.infer.model import Model
from unmask.infer.next_token import NextToken
from unmask.infer.sampling import Beams, Greedy, Sampling
from unmask.tree import signature, texts_of

TokenReader = NextToken | DecoderToken
_UNSEEN = 16  # GPU steps between two checks whether all texts have ended, because each check waits for the device


def reader_of(model: Model, cached: bool = True) -> TokenReader:
    """The reader of a model that generates text."""
    if "decoder" not in gives_of(model.recipe.system) or "second" not in model.recipe.writes:
        return NextToken(model, cached)
    require(
        cached, "{folder} writes with a decoder, which always has a cache: leave --no-cache out", folder=model.folder
    )
    return DecoderToken(model)


def writes_text(model: Model) -> bool:
    """Whether a model generates text: it continues one, or writes one from a source."""
    return "token scores" in gives_of(model.recipe.predict) and bool(model.recipe.writes & {"left", "second"})


def drafts(
    reader: TokenReader, texts: list[list[int]], address: Tensor, how: Greedy | Sampling, tokens: int, *,
    keep: bool = False,
) -> Iterator[Draft]:  # fmt: skip
    """The texts after each step. A prompt has as many texts as there are addresses per prompt. `keep`: each draft has the
    scores of its last tokens."""
    samples = len(address) // len(texts)
    rows = [text for text in reader.repeatable(texts) for _ in range(samples)]

    def start(state: Any, scores: Tensor) -> Draft:
        return first_draft(state, scores, address, tokens, rows, how, keep=keep)

    return _records(reader, texts, samples, tokens, how, start, partial(draw, how=how, end=reader.end))


def searches(reader: TokenReader, texts: list[list[int]], how: Beams, tokens: int) -> Iterator[Search]:
    """The search after each step."""
    rows = [text for text in reader.repeatable(texts) for _ in range(how.beams)]

    def start(state: Any, scores: Tensor) -> Search:
        return first_search(state, scores, how, tokens, rows)

    return _records(reader, texts, how.beams, tokens, how, start, partial(follow, how=how, end=reader.end))


def last(reader: TokenReader, found: Iterator[Any]) -> Any:
    """The record after all texts have ended, or after all steps."""
    every = _UNSEEN if records(reader.model.device) else 1
    record = None
    for number, record in enumerate(found, 1):
        if number % every == 0 and not bool(record.going):
            break
    return record


def _records(
    reader: TokenReader, texts: list[list[int]], copies: int, tokens: int, how: Any, start: Callable[[Any, Tensor], Any],
    choose: Callable[[Any, Tensor], Any],
) -> Iterator[Any]:  # fmt: skip
    """The record (Draft or Search) after each step. `start` makes the first record; `choose` adds a token, given its scores."""
    windows, network = reader.windows([text for text in texts for _ in range(copies)]), reader.model.system.backbone
    room = reader.room(texts, tokens)
    scores, state = reader.whole([text[-reader.model.length :] for text in texts], room)  # read once, then copied
    row = torch.arange(len(texts), device=scores.device).repeat_interleave(copies)
    scores, state = scores[row], state if copies == 1 else texts_of(state, row)

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
