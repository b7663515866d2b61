"""A language model on a text: loss, perplexity, bits per byte and per character, and how they were measured.

A window is `context` tokens long; its first token is only read and each other one is predicted from all before it.
Every token of the text is scored exactly once, whichever way is taken:

    blocks       windows that share one token: a token may look back no further than to where its window begins
    overlapping  windows that advance by `stride`: beyond the first, only the `stride` last tokens of each are scored
    sliding      windows that advance by one token: each token is scored with all the context there is; exact and slow
    memory       segments in order, each after what the network remembers of those before it (Transformer-XL)
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unmask import metrics
from unmask.backbone.transformer_xl import check_clamp
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.evaluate.scored_text import ScoredText, read_scored_text
from unmask.infer.likelihood import Read, machine_of, require_predicts_next, score
from unmask.infer.model import Model
from unmask.infer.passes import PASS

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Windowing:
    """How the text is cut up; a stride that leaves out no token is in 1 ... context - 1."""

    context: int  # tokens in a window, or in a segment
    stride: int  # tokens by which windows advance
    memory: int = 0  # tokens remembered from the segments before; 0: nothing is

    @property
    def name(self) -> str:
        if self.memory:
            return "memory"
        return "sliding" if self.stride == 1 else "blocks" if self.stride == self.context - 1 else "overlapping"

    def exact(self, tokens: int, endless: bool = False) -> bool:
        """Whether each of this number of tokens is scored with all the context that the network could have.

        `endless`: it could look back to the beginning of any text."""
        if self.memory:
            return self.memory >= (tokens - 1) // self.context * self.context  # what stands before the last segment
        return tokens < self.context or (self.stride == 1 and not endless)


def windowing(
    model: Model, *, context: int | None = None, stride: int | None = None, memory: int | None = None
) -> Windowing:
    """The way that the options ask for; by default blocks as long as the rows of training, or with a memory its own."""
    remembered: int = model.recipe.system.backbone.memory
    require(
        memory is None or model.system.backbone.endless,
        f"{model.folder} has no memory to set to {memory}: leave --memory out, and give --stride for more context",
    )
    require(memory is None or memory >= 0, f"memory must be 0 tokens or more, got {memory}")
    length = checked_context(model, context)
    kept = remembered if memory is None else memory
    require(
        not kept or stride is None,
        f"{model.folder} remembers {kept} tokens, its segments do not overlap: leave --stride out, or give --memory 0",
    )
    if kept:
        check_clamp(model.system.backbone.reach, kept)
        return Windowing(length, length, kept)
    stride = length - 1 if stride is None else stride
    require(
        1 <= stride < length,
        f"stride must be between 1 and {length - 1:,} (one less than the context of {length:,} tokens, whose first "
        f"is only read), got {stride:,}",
    )
    return Windowing(length, stride)


def checked_context(model: Model, context: int | None) -> int:
    """The length of a window: that of the rows of training if none is given."""
    if context is None:
        return _trained(model)
    network = model.system.backbone  # one that knows distances, not places, reads any window
    require(
        context >= 2 and (network.endless or context <= model.places),
        f"context must be 2 tokens or more; got {context:,}"
        if network.endless
        else f"context must be between 2 and {model.places:,} tokens, the longest that {model.folder} reads; got {context:,}",
    )
    return context


def about_context(model: Model, context: int) -> Counter[str]:
    """The notes about a window that is longer than the rows of training."""
    trained, reach = _trained(model), model.system.backbone.reach
    notes: Counter[str] = Counter()
    if context > trained:
        notes[f"tokens of context are more than the {trained:,} of the rows in training"] = context
        if reach is not None and context > reach:
            notes[f"tokens of context: those farther away than {reach:,} count as that far"] = context
    return notes


def _memory(model: Model) -> int | None:
    """The tokens that it remembered in training; None: its network has no memory."""
    return getattr(model.recipe.system.backbone, "memory", None)  # type: ignore[attr-defined]


def _trained(model: Model) -> int:
    """The length of the longest rows of training."""
    return min(max(stage.length for stage in model.recipe.schedule), model.length)


def _about(model: Model, way: Windowing, stream: ScoredText) -> Counter[str]:
    """The notes about a text and how it is read."""
    notes = stream.notes + about_context(model, way.context)
    remembered = _memory(model) or 0
    if way.memory > remembered:
        notes[f"tokens of memory are more than the {remembered:,} in training"] = way.memory
    if len(stream.ids) < way.context:
        notes[f"tokens are all of the text, and the context is {way.context:,}: it is scored in one window"] = (
            stream.tokens
        )
    return notes


def score_text(
    model: Model, files: Paths, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8",
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Score a text, yielding a record per pass; the last one holds the scores, and `notes`.

    `whole`: a file is one document. `lines`: a line is one. `encoding`: of the files."""
    require_predicts_next(model)
    way = windowing(model, context=context, stride=stride, memory=memory)
    yield from score_read_text(model, read_scored_text(model, files, whole=whole, lines=lines, encoding=encoding), way)


def score_read_text(model: Model, stream: ScoredText, way: Windowing) -> Iterator[dict[str, Any]]:
    """The same for a text that was read before."""
    nats, done, begun, read = 0.0, 0, time.perf_counter(), _reader(model, way, stream.tokens)
    for rows, scored in _passes(stream.ids, way):
        found = score(model, rows, scored, read=read)
        nats, done = nats - float(found.logs.sum()), done + len(found.logs)
        yield {"tokens": done, "tokens_total": stream.tokens, "loss": nats / done}
    require(math.isfinite(nats), f"the loss of {model.folder} on {stream.name} is {nats}: are its weights whole?")
    measured = _measured(model, way, stream, time.perf_counter() - begun)
    yield _summary(stream, nats) | measured | {"notes": dict(_about(model, way, stream))}


def evaluate_text(
    model: Model, files: Paths, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8",
) -> dict[str, Any]:  # fmt: skip
    """The scores of a language model on a text. `whole`, `lines`, `encoding`: as in `prepare`."""
    *_, last = score_text(
        model, files, context=context, stride=stride, memory=memory, whole=whole, lines=lines, encoding=encoding
    )
    return last


def windows(tokens: int, context: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Where each window of a stream begins and ends, and how many of its last tokens are scored."""
    begin, end = 0, min(context, tokens)
    yield begin, end, end - 1
    while end < tokens:
        begin += stride
        end, before = min(begin + context, tokens), end
        yield begin, end, end - before


def _passes(ids: np.ndarray, way: Windowing) -> Iterator[tuple[list[np.ndarray], list[int]]]:
    """The windows, or one segment after the other, in order, as many as are read in one pass."""
    if way.memory:  # the token after a segment is predicted and not read, so segments meet
        for begin in range(0, len(ids) - 1, way.context):
            row = ids[begin : begin + way.context + 1]
            yield [row], [len(row) - 1]
        return
    rows: list[np.ndarray] = []
    scored: list[int] = []
    for begin, end, count in windows(len(ids), way.context, way.stride):
        rows.append(ids[begin:end])
        scored.append(count)
        if (len(rows) + 1) * way.context > PASS or end == len(ids):
            yield rows, scored
            rows, scored = [], []


def _reader(model: Model, way: Windowing, tokens: int) -> Read | None:
    """How the network looks at a segment: after what it remembers of those before, as much as the way says.

    `tokens`: of the text; no place is made for more."""
    if not way.memory:
        return None
    network = model.system.backbone
    state = network.cache(1, min(way.memory, tokens))

    def read(batch: Batch) -> Hidden:
        nonlocal state
        hidden: Hidden
        hidden, state = model.system.read_on(batch, state)
        return hidden

    return read


def _summary(stream: ScoredText, nats: float) -> dict[str, Any]:
    return {
        "documents": stream.documents,
        "tokens": stream.tokens,
        "words": stream.words,
        "characters": stream.characters,
        "bytes": stream.bytes,
        "loss": nats / stream.tokens,
        "perplexity": metrics.perplexity(nats, stream.tokens),
        "perplexity_per_word": metrics.perplexity(nats, stream.words) if stream.words else None,
        "bits_per_byte": metrics.bits_per(nats, stream.bytes),
        "bits_per_character": metrics.bits_per(nats, stream.characters),
    }


def _measured(model: Model, way: Windowing, stream: ScoredText, seconds: float) -> dict[str, Any]:
    return {
        "way": way.name,
        "exactness": "exact" if way.exact(stream.tokens, model.system.backbone.endless) else "approximation",
        "context": way.context,
        "stride": way.stride,
        "memory": way.memory or None,
        "counted": "bytes (UTF-8), characters and words of the original text; tokens with the ends of documents",
        "words_are": "what stands between spaces" if stream.words else "not counted: the script has no spaces",
        "precision": "bfloat16" if machine_of(model).half else "float32",
        "tokens_per_second": stream.tokens / seconds,
    }
