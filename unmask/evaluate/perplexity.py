"""Score a language model on a text: loss, perplexity, bits per byte and per character, and how they were measured.

A window is `context` tokens long. Its first token is only read; each other token is predicted from all tokens before it in
the window. There are four ways to read a text. Each of them scores every token of the text exactly once:

    blocks       windows that share one token: a token sees no token before the start of its window
    overlapping  windows that advance by `stride`: after the first window, only the last `stride` tokens are scored
    sliding      windows that advance by one token: each token is scored with all possible context; exact and slow
    memory       segments in order: the network remembers the segments before (Transformer-XL, the cells of an LSTM)
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
from unmask.axes import ALL_TOKENS
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
    """How the text is split into windows. With a stride in 1 ... context - 1, every token is scored."""

    context: int  # tokens in a window, or in a segment
    stride: int  # tokens by which windows advance
    memory: int = 0  # tokens remembered from earlier segments; 0: there is no memory

    @property
    def name(self) -> str:
        if self.memory:
            return "memory"
        return "sliding" if self.stride == 1 else "blocks" if self.stride == self.context - 1 else "overlapping"

    def exact(self, tokens: int, endless: bool = False) -> bool:
        """Whether, in a text of `tokens` tokens, each one is scored with all the context that the network can use.

        `endless`: whether the network can look back to the beginning of any text."""
        if self.memory:
            return self.memory >= (tokens - 1) // self.context * self.context  # all tokens before the last segment
        return tokens < self.context or (self.stride == 1 and not endless)


def windowing(
    model: Model, *, context: int | None = None, stride: int | None = None, memory: int | None = None
) -> Windowing:
    """The windowing that the options describe. By default, blocks as long as the training rows, or the model's own memory."""
    remembered: int = model.recipe.system.backbone.memory
    require(
        memory is None or model.system.backbone.endless,
        (
            "--memory {memory} has no effect, because {folder} has no memory: leave --memory out, and give "
            "--stride for more context"
        ),
        memory=memory,
        folder=model.folder,
    )
    require(
        remembered < ALL_TOKENS or memory in (None, 0),
        (
            "--memory {memory} has no effect, because the cells of {folder} remember texts of any length: leave --memory "
            "out, or give --memory 0 for cells that begin again in every window"
        ),
        memory=memory,
        folder=model.folder,
    )
    require(memory is None or memory >= 0, "memory must be 0 tokens or more, got {memory}", memory=memory)
    length = checked_context(model, context)
    kept = remembered if memory is None else memory
    require(
        not kept or stride is None,
        ("{folder} remembers {kept} tokens, so its segments do not overlap: leave --stride out, or give --memory 0"),
        folder=model.folder,
        kept="all" if kept == ALL_TOKENS else kept,
    )
    if kept:
        check_clamp(model.system.backbone.reach, kept)
        return Windowing(length, length, kept)
    stride = length - 1 if stride is None else stride
    require(
        1 <= stride < length,
        (
            "stride must be between 1 and {length:,} (one less than the context of {length_2:,} tokens, because "
            "the first token of a window is only read), got {stride:,}"
        ),
        length=length - 1,
        length_2=length,
        stride=stride,
    )
    return Windowing(length, stride)


def checked_context(model: Model, context: int | None) -> int:
    """The length of a window. By default, the length of the training rows."""
    if context is None:
        return _trained(model)
    network = model.system.backbone  # an endless network has relative positions and reads windows of any length
    require(
        context >= 2 and (network.endless or context <= model.places),
        f"context must be 2 tokens or more; got {context:,}"
        if network.endless
        else f"context must be between 2 and {model.places:,} tokens, the most that {model.folder} reads; got {context:,}",
    )
    return context


def about_context(model: Model, context: int) -> Counter[str]:
    """The notes about a window that is longer than the training rows."""
    trained, reach = _trained(model), model.system.backbone.reach
    notes: Counter[str] = Counter()
    if context > trained:
        notes[f"tokens of context are more than the {trained:,} tokens of the training rows"] = context
        if reach is not None and context > reach:
            notes[f"tokens of context: a distance over {reach:,} tokens counts as {reach:,}"] = context
    return notes


def _memory(model: Model) -> int | None:
    """The number of tokens that the model remembered in training; None: its network has no memory."""
    return model.recipe.system.backbone.memory if model.system.backbone.endless else None


def _trained(model: Model) -> int:
    """The length of the longest training rows."""
    return min(max(stage.length for stage in model.recipe.schedule), model.length)


def _about(model: Model, way: Windowing, stream: ScoredText) -> Counter[str]:
    """The notes about a text and about the windows."""
    notes = stream.notes + about_context(model, way.context)
    remembered = _memory(model) or 0
    if way.memory > remembered:
        notes[f"tokens of memory are more than the {remembered:,} in training"] = way.memory
    if len(stream.ids) < way.context:
        notes[f"tokens in the text are fewer than the context of {way.context:,}: it is scored in one window"] = (
            stream.tokens
        )
    return notes


def score_text(
    model: Model, files: Paths, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8",
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Score a text, yielding a record per pass. The last record holds the scores and `notes`.

    `whole`: each file is one document. `lines`: each line is one document. `encoding`: of the files."""
    require_predicts_next(model)
    way = windowing(model, context=context, stride=stride, memory=memory)
    yield from score_read_text(model, read_scored_text(model, files, whole=whole, lines=lines, encoding=encoding), way)


def score_read_text(model: Model, stream: ScoredText, way: Windowing) -> Iterator[dict[str, Any]]:
    """Like `score_text`, for a text that is already read."""
    nats, done, begun, read = 0.0, 0, time.perf_counter(), _reader(model, way, stream.tokens)
    for rows, scored in _passes(stream.ids, way):
        found = score(model, rows, scored, read=read)
        nats, done = nats - float(found.logs.sum()), done + len(found.logs)
        yield {"tokens": done, "tokens_total": stream.tokens, "loss": nats / done}
    require(
        math.isfinite(nats),
        "the loss of {folder} on {name} is {nats}: its weights may be damaged; train or import it again",
        folder=model.folder,
        name=stream.name,
        nats=nats,
    )
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
    """Yields the begin and the end of each window in a stream, and how many of its last tokens are scored."""
    begin, end = 0, min(context, tokens)
    yield begin, end, end - 1
    while end < tokens:
        begin += stride
        end, before = min(begin + context, tokens), end
        yield begin, end, end - before


def _passes(ids: np.ndarray, way: Windowing) -> Iterator[tuple[list[np.ndarray], list[int]]]:
    """Yields the rows of each pass, and how many tokens of each row are scored. With a memory, a pass is one segment."""
    if way.memory:  # a row ends with the first token of the next segment, which is predicted and not read
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
    """The function that reads a segment with the memory of earlier segments; None without a memory.

    `tokens`: the length of the text, because the memory never needs to be longer."""
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
        "memory": (stream.tokens if way.memory == ALL_TOKENS else way.memory) or None,
        "counted": "bytes (UTF-8), characters and words of the original text; tokens with the ends of documents",
        "words_are": "separated by spaces" if stream.words else "not counted: the script has no spaces",
        "precision": "bfloat16" if machine_of(model).half else "float32",
        "tokens_per_second": stream.tokens / seconds,
    }
