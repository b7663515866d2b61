"""Batches of single texts, made for speed: only token ids are made, and texts of similar length are read together.

Words and sentences are not found, because no network reads them. The rows are those of `unmask.data.examples`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from unmask.batch import Batch
from unmask.data.arrange import ROLES, special_ids
from unmask.data.examples import Laid, Text
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import batches, laid_out, together, tokens_at_once
from unmask.text import layout as layouts
from unmask.text.encode import encode_documents, encode_ids
from unmask.text.word_tokens import NO_BYTE, SPELLING

Texts = Sequence[str] | Sequence[Sequence[int]] | Sequence[np.ndarray]  # texts, or their token ids


@dataclass(frozen=True)
class _Frame:
    """The special tokens around a text, from the layout."""

    before: list[int]  # ids
    after: list[int]
    segments: tuple[list[int], int, list[int]]  # of the tokens before, of the text, and of the tokens after
    summary: int  # place of the summary token: counted from the start if it is 0 or more, otherwise from the end


def text_batches(model: Model, texts: Texts) -> tuple[Iterator[tuple[np.ndarray, Batch]], Counter[str]]:
    """Pairs of the numbers of some texts and their batch on the model's device; and notes that count the texts that are cut."""
    if model.graph is not None and len(texts):
        return _with_entities(model, texts)
    ids, counts, spelling = _encoded(model, texts)
    empty = np.flatnonzero(counts == 0)
    require(
        not len(empty),
        "text number {empty} of {count_of_texts} is empty: every example needs a text",
        empty=int(empty[0]) + 1 if len(empty) else 0,
        count_of_texts=len(texts),
    )
    frame, room = _frame(model), room_of(model)
    cut = int((counts > room).sum())
    notes = Counter({f"texts longer than {model.length} tokens, cut": cut} if cut else {})
    begins = np.cumsum(counts) - counts
    return _batches(model, frame, ids, begins, np.minimum(counts, room), spelling), notes


def _with_entities(model: Model, texts: Texts) -> tuple[Iterator[tuple[np.ndarray, Batch]], Counter[str]]:
    """The same for a model that reads the entities of texts."""
    require(
        isinstance(texts[0], str),
        "{folder} reads the entities that a text names, so it needs texts, got token ids: give texts",
        folder=model.folder,
    )
    rows, notes = laid_out(model, Laid([Text(str(text)) for text in texts]))
    return batches(model, rows), notes


def _encoded(model: Model, texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The token ids of all texts, one after another, the number of tokens of each, and the spelling of all tokens, if the
    tokenizer keeps it."""
    if model.tokenizer.keeps_spelling:
        require(
            not len(texts) or isinstance(texts[0], str),
            "{folder} reads words by their spelling, so it needs texts, got token ids: give the texts",
            folder=model.folder,
        )
        documents = encode_documents(texts, model.tokenizer, "none")  # type: ignore[arg-type]
        counts = np.array([len(document.ids) for document in documents], np.int64)
        spelling = np.concatenate([document.columns[SPELLING].values for document in documents])
        return np.concatenate([document.ids for document in documents]), counts, spelling
    if not len(texts) or isinstance(texts[0], str):
        return *encode_ids(texts, model.tokenizer), None  # type: ignore[arg-type]
    ids = [np.asarray(text, np.int64).reshape(-1) for text in texts]
    joined, size = np.concatenate(ids), model.tokenizer.vocabulary.size
    wrong = joined[(joined < 0) | (joined >= size)]
    require(
        not len(wrong),
        "token ids must be between 0 and {last}, got {wrong}: the vocabulary has {size} tokens",
        last=size - 1,
        wrong=int(wrong[0]) if len(wrong) else 0,
        size=size,
    )
    return joined, np.array([len(text) for text in ids], np.int64), None


def room_of(model: Model) -> int:
    """The most tokens of a text that the model reads: the layout has special tokens too."""
    return model.length - sum(map(len, around(model)))


def around(model: Model) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text, from the layout."""
    frame = _frame(model)
    return frame.before, frame.after


def _frame(model: Model) -> _Frame:
    layout = model.recipe.layout
    items = layouts.items(layout, 1)
    known = dict(zip(ROLES, special_ids(model.tokenizer, layout), strict=True))
    at = next(number for number, item in enumerate(items) if item.is_text)
    place = layouts.summary(layout, 1)
    sides = items[:at], items[at + 1 :]
    before, after = ([known[item.name] for item in side] for side in sides)
    kinds = ([item.segment for item in side] for side in sides)
    # the summary token of a text itself is its last token
    return _Frame(
        before, after, (next(kinds), items[at].segment, next(kinds)), place if place < at else place - len(items)
    )


def _batches(
    model: Model, frame: _Frame, ids: np.ndarray, begins: np.ndarray, counts: np.ndarray, spelling: np.ndarray | None
) -> Iterator[tuple[np.ndarray, Batch]]:
    ahead, behind = len(frame.before), len(frame.after)
    lengths, multiple = counts + ahead + behind, 1 if model.device == "cpu" else 8
    first, own, last = frame.segments
    for chosen in together(lengths, tokens=tokens_at_once(model)):
        few = lengths[chosen]
        width = min(-(-int(few.max()) // multiple) * multiple, max(model.places, int(few.max())))
        steps = np.arange(width) - ahead  # the place in the text
        inside = (steps >= 0) & (steps < counts[chosen, None])  # B T
        source = (begins[chosen, None] + steps)[inside]
        rows = np.full((len(chosen), width), model.tokenizer.vocabulary.pad, np.int64)
        segment = np.where(inside, own, 0)
        rows[inside] = ids[source]
        rows[:, :ahead], segment[:, :ahead] = frame.before, first
        for place in range(behind):
            at = np.arange(len(chosen)), few - behind + place
            rows[at], segment[at] = frame.after[place], last[place]
        spelled = None
        if spelling is not None:
            spelled = np.full((*rows.shape, spelling.shape[1]), NO_BYTE, np.int64)
            spelled[inside] = spelling[source]
        batch = _batch(rows, segment, few, frame.summary)
        if spelled is not None:
            batch = batch.replace(columns={SPELLING: torch.from_numpy(spelled)})
        yield chosen, batch if model.device == "cpu" else batch.to(model.device, non_blocking=True)


def _batch(ids: np.ndarray, segment: np.ndarray, lengths: np.ndarray, summary: int) -> Batch:
    rows, width = ids.shape
    steps, number = np.arange(width), np.arange(rows)
    real = steps < lengths[:, None]
    place = number * width + (summary if summary >= 0 else lengths + summary)
    zeros = torch.zeros(rows, dtype=torch.long)
    return Batch(
        ids=torch.from_numpy(ids),
        example=torch.from_numpy(real.astype(np.int64) - 1),
        segment=torch.from_numpy(segment),
        position=torch.from_numpy(np.where(real, steps, 0)),
        row=torch.from_numpy(number),
        visit=zeros,
        summary=torch.from_numpy(place),
        label=zeros,
        counted=torch.ones(rows),
    )
