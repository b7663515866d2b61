"""Examples that are given, not arranged, such as those of a task: one row per example, or one row per reading of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from unmask import chance
from unmask.batch import Batch, Document
from unmask.data.arrange import render, special_ids
from unmask.data.marks import Marks, column_of
from unmask.data.pack import Rows, pack
from unmask.data.pack_examples import Packing, batch_of, packed_batch, padding_of
from unmask.data.pairs import truncate
from unmask.data.reader import Notes
from unmask.data.shards import Texts
from unmask.data.windows import windows
from unmask.errors import require
from unmask.text import Linker, Tokenizer, Words, encode_documents
from unmask.text import layout as layouts
from unmask.text.boundaries import available
from unmask.text.encode import PLACES


@dataclass(frozen=True)
class Text:
    """One input: a text, or two."""

    a: str
    b: str | None = None

    @property
    def orders(self) -> tuple[Text, Text]:
        """A pair in both orders."""
        require(self.b is not None, ("orders=both reads two texts in both orders, but an example has only one "
'text: give "text_a" and "text_b", or adapt with orders=one; got {a!r:.60}'), a=self.a)  # fmt: skip
        return self, Text(str(self.b), self.a)


@dataclass(frozen=True)
class Laid:
    """Examples laid out for reading: each has one text or more, and each text becomes a row."""

    readings: Sequence[Text | tuple[Text, ...]]  # per example: one text, or one for each reading
    labels: Sequence[int] = ()  # per example: a class, counted from 0; (): unknown
    keep: Literal["front", "back"] = "front"  # which end is kept of a first text that is too long
    marks: Sequence[Marks] = ()  # columns that are made from characters of the texts
    # by name, an entry per example: answers that are not one class; with `windows`, each window has its example's entry
    answers: Mapping[str, np.ndarray] = field(default_factory=dict)
    # a text that is too long is read in windows that advance by this share of a row; none: it is cut
    stride: float | None = None
    windows: Literal["apart", "together"] = "apart"  # each window is a row on its own, or a reading of its example

    @property
    def needs_places(self) -> bool:
        """Whether the rows need the places of their tokens in the texts."""
        return bool(self.marks)


OWNER = "owner"  # in `per_example` of rows with windows: the number of the example that a window belongs to


def rows_of_task(
    laid: Laid, tokenizer: Tokenizer, layout: str, length: int, *, linker: Linker | None = None
) -> tuple[Rows, Counter[str]]:
    """The rows of a task's examples; the notes count the texts that were cut. `linker`: finds the entities of the texts."""
    words: Words = "none" if linker is None else available("auto")  # a name never begins inside a word
    return _rows(laid, tokenizer, layout, length, words, linker)


def rows_of_track(laid: Laid, tokenizer: Tokenizer, layout: str, length: int) -> tuple[Rows, Counter[str]]:
    """The rows of a task's examples for a track of pretraining: with words, which a rule may hide, and with a width that is a
    multiple of 8."""
    return _rows(laid, tokenizer, layout, length, available("auto"), multiple=8)


def rows_of(
    examples: Sequence[Text | tuple[Text, ...]], labels: Sequence[int], tokenizer: Tokenizer, layout: str, length: int,
    words: Words = "none", *, keep: Literal["front", "back"] = "front",
) -> tuple[Rows, Counter[str]]:  # fmt: skip
    """The rows of these examples, cut to the length; the notes count the texts that were cut. An example with several
    readings has a row for each; examples with fewer readings than others get empty rows. `keep`: which end of a first text
    is kept."""
    return _rows(Laid(examples, labels, keep=keep), tokenizer, layout, length, words)


def _rows(
    laid: Laid, tokenizer: Tokenizer, layout: str, length: int, words: Words, linker: Linker | None = None, *,
    multiple: int = 1,
) -> tuple[Rows, Counter[str]]:  # fmt: skip
    readings = [example if isinstance(example, tuple) else (example,) for example in laid.readings]
    texts = [text for several in readings for text in several]
    counts = np.array([len(several) for several in readings])
    labels = np.repeat(np.array(laid.labels or [0] * len(readings), dtype=np.int64), counts)
    pairs = any(text.b is not None for text in texts)
    joined, a, b = _encoded(laid, texts, tokenizer, words, linker)
    room = length - layouts.overhead(layout, 2 if pairs else 1)
    require(
        room >= 2, "{length} tokens leave no room for a text in {layout!r}: use 8 or more", length=length, layout=layout
    )
    owner = None
    if laid.stride is None:
        notes = _cut(a, b if pairs else np.zeros_like(a), room, length, laid.keep)
    else:
        a, b, owner = windows(a, b if pairs else None, room, laid.stride)
        labels, counts, notes = labels[owner], *_counted(laid, owner, length)
    chosen = {"a": a, "b": b} if pairs else {"a": a}
    runs = render(chosen, labels, layout, len(joined.ids), notes)
    longest, pad = int(np.bincount(runs.example, weights=runs.length).max()), tokenizer.vocabulary.pad
    width = min(length, -(-longest // multiple) * multiple)
    rows = pack(joined, runs, special_ids(tokenizer, layout), pad, width, packed=False)
    if owner is None:  # in windows, all of a text is read
        lost = {marks.name: int((rows.columns[marks.name].values < 0).all(1).sum()) for marks in laid.marks}
        notes.update({f"texts whose {name} was cut off": count for name, count in lost.items() if count})
    apart = owner is not None and laid.windows == "apart"
    numbers = owner if apart and owner is not None else np.arange(len(counts))
    answers = {name: values[numbers] for name, values in laid.answers.items()} | ({OWNER: numbers} if apart else {})
    return replace(_together(rows, counts, pad), per_example=answers), notes


def _encoded(
    laid: Laid, texts: Sequence[Text], tokenizer: Tokenizer, words: Words, linker: Linker | None
) -> tuple[Texts, np.ndarray, np.ndarray]:
    """The tokens of all texts with the columns of the marks, and the span of each first and each second text."""
    documents = encode_documents([t.a for t in texts], tokenizer, words, places=laid.needs_places, linker=linker)
    empty = [number for number, document in enumerate(documents, 1) if not len(document.ids)]
    require(
        not empty,
        "text number {empty} of {count_of_texts} is empty: every example needs a text",
        empty=empty[0] if empty else 0,
        count_of_texts=len(texts),
    )
    if any(t.b is not None for t in texts):
        second = [t.b or "" for t in texts]
        documents += encode_documents(second, tokenizer, words, places=laid.needs_places, linker=linker)
    for marks in laid.marks:
        documents = [_marked(document, i, marks, len(texts)) for i, document in enumerate(documents)]
    ends = np.cumsum([len(d.ids) for d in documents])
    spans = np.stack((np.concatenate(([0], ends[:-1])), ends), 1).astype(np.int64)
    return Texts.of(documents), spans[: len(texts)], spans[len(texts) :]


def _marked(document: Document, number: int, marks: Marks, texts: int) -> Document:
    """A document with the column of these marks; the first half of the documents are the first texts."""
    own = (number >= texts) == (marks.text == "b")
    column = column_of(document.columns[PLACES].values, marks.marks[number % texts] if own else (), marks.on)
    return replace(document, columns=document.columns | {marks.name: column})


def _cut(a: np.ndarray, b: np.ndarray, room: int, length: int, keep: Literal["front", "back"]) -> Counter[str]:
    """Cut the texts that are too long; changes the spans. The notes count them."""
    ends = a[:, 1].copy()
    cut = truncate(a, b, room, None)
    if keep == "back":
        a += (ends - a[:, 1])[:, None]
    return Counter({f"texts longer than {length} tokens, cut": int((cut > 0).sum())} if cut.any() else {})


def _counted(laid: Laid, owner: np.ndarray, length: int) -> tuple[np.ndarray, Counter[str]]:
    """How many rows each example has, and the notes on texts that are read in windows."""
    each = np.bincount(owner)
    long = int((each > 1).sum())
    notes = Counter({f"texts longer than {length} tokens, read in windows": long} if long else {})
    return (each if laid.windows == "together" else np.ones(len(owner), np.int64)), notes


def _together(rows: Rows, counts: np.ndarray, pad: int) -> Rows:
    """Group the rows by example: every example gets the same number of rows (unused ones are empty) and one label."""
    most, first = int(counts.max()), np.cumsum(counts) - counts
    place = np.repeat(np.arange(len(counts)) * most - first, counts) + np.arange(counts.sum())

    def spread(values: np.ndarray, empty: int) -> np.ndarray:
        out = np.full((len(counts) * most, *values.shape[1:]), empty, values.dtype)
        out[place] = values
        return out

    return Rows(
        ids=spread(rows.ids, pad),
        example=spread(rows.example, -1),
        segment=spread(rows.segment, 0),
        position=spread(rows.position, 0),
        summary=spread(rows.summary, 0),
        label=rows.label[first],
        counted=rows.counted[first],
        columns={name: replace(c, values=spread(c.values, c.fill)) for name, c in rows.columns.items()},
    )


class Examples:
    """An endless source of batches from given rows, in a new order for every epoch.

    `widths`: the most different widths of batches, about; none: as narrow as their examples allow, in steps of 8.
    `packing`: how several examples share a row; none: each has a row of its own."""

    def __init__(
        self, rows: Rows, seed: int, state: dict[str, Any] | None = None, *, widths: int | None = None,
        packing: Packing | None = None,
    ) -> None:  # fmt: skip
        self.rows, self.seed, self.taken = rows, seed, int((state or {}).get("taken", 0))
        self.packing, self.static = packing, widths is not None
        self.pad = 0 if packing is None else padding_of(rows)  # found once, in all rows
        self.multiple = 8 if widths is None else 8 * max(1, math.ceil(rows.ids.shape[1] / (8 * widths)))
        self.orders: dict[int, np.ndarray] = {}  # of the last epochs, by their numbers

    def batch(self, rows: int) -> Batch:
        numbers = np.arange(self.taken, self.taken + rows)
        self.taken += rows
        visits = numbers // len(self.rows)
        chosen = [self._order(int(v))[numbers[visits == v] % len(self.rows)] for v in np.unique(visits)]
        examples = np.concatenate(chosen)
        if self.packing is not None:
            return packed_batch(self.rows, examples, visits, self.packing, self.pad, static=self.static)
        return batch_of(self.rows, examples, visits, multiple=self.multiple)

    def _order(self, visit: int) -> np.ndarray:
        if visit not in self.orders:
            keys = chance.draw(np.arange(len(self.rows)), self.seed, visit, chance.purpose("examples"))
            kept = {number: order for number, order in self.orders.items() if number == visit - 1}
            self.orders = kept | {visit: np.argsort(keys, kind="stable")}
        return self.orders[visit]

    def state(self) -> dict[str, Any]:
        return {"taken": self.taken}

    def after_stage(self) -> dict[str, Any]:
        return self.state()

    @property
    def notes(self) -> Notes:
        """Nothing is left out."""
        return {}
