"""Examples that come ready made, such as a task's, one per row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask import chance
from unmask.batch import Batch
from unmask.data.arrange import render, special_ids
from unmask.data.loader import to_batch
from unmask.data.pack import Rows, pack
from unmask.data.pairs import truncate
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import Tokenizer, Words, encode_documents
from unmask.text import layout as layouts


@dataclass(frozen=True)
class Text:
    """One input: a text, or two."""

    a: str
    b: str | None = None


def rows_of(
    texts: Sequence[Text], labels: Sequence[int], tokenizer: Tokenizer, layout: str, length: int, words: Words = "none"
) -> tuple[Rows, Counter[str]]:
    """The rows of these texts, cut at the end to the length; the notes count how many were."""
    documents = encode_documents([t.a for t in texts], tokenizer, words)
    empty = [number for number, document in enumerate(documents, 1) if not len(document.ids)]
    require(not empty, f"text number {empty[0] if empty else 0} of {len(texts)} is empty: every example needs a text")
    pairs = [t.b is not None for t in texts]
    if any(pairs):
        documents += encode_documents([t.b or "" for t in texts], tokenizer, words)
    joined = Texts.of(documents)
    ends = np.cumsum([len(d.ids) for d in documents])
    spans = np.stack((np.concatenate(([0], ends[:-1])), ends), 1).astype(np.int64)
    a, b = spans[: len(texts)], spans[len(texts) :]
    room = length - layouts.overhead(layout, 2 if any(pairs) else 1)
    require(room >= 2, f"{length} tokens leave no room for a text in {layout!r}: use 8 or more")
    cut = truncate(a, b if any(pairs) else np.zeros_like(a), room, None)
    notes = Counter({f"texts longer than {length} tokens, cut": int((cut > 0).sum())} if cut.any() else {})
    chosen = {"a": a, "b": b} if any(pairs) else {"a": a}
    runs = render(chosen, np.array(labels, dtype=np.int64), layout, len(joined.ids), notes)
    longest = int(np.bincount(runs.example, weights=runs.length).max())
    return pack(joined, runs, special_ids(tokenizer, layout), tokenizer.vocabulary.pad, longest, packed=False), notes


def batch_of(rows: Rows, chosen: np.ndarray, visits: np.ndarray | int = 0) -> Batch:
    """Some of the rows as a batch, no longer than the longest of them needs."""
    longest = int((rows.example[chosen] >= 0).sum(1).max())
    width = min(rows.ids.shape[1], -(-longest // 8) * 8)
    numbers = np.asarray(chosen, dtype=np.int64)

    def column(name: str) -> np.ndarray | None:
        stored: np.ndarray | None = getattr(rows, name)
        return None if stored is None else stored[numbers, :width]

    return to_batch(column, numbers, np.full(len(numbers), visits))


class Examples:
    """A source of batches over given rows: shuffled anew at every visit, endless."""

    def __init__(self, rows: Rows, seed: int, state: dict[str, Any] | None = None) -> None:
        self.rows, self.seed, self.taken = rows, seed, int((state or {}).get("taken", 0))

    def batch(self, rows: int) -> Batch:
        numbers = np.arange(self.taken, self.taken + rows)
        self.taken += rows
        visits = numbers // len(self.rows)
        chosen = [self._order(int(v))[numbers[visits == v] % len(self.rows)] for v in np.unique(visits)]
        return batch_of(self.rows, np.concatenate(chosen), visits)

    def _order(self, visit: int) -> np.ndarray:
        keys = chance.draw(np.arange(len(self.rows)), self.seed, visit, chance.purpose("examples"))
        return np.argsort(keys, kind="stable")

    def state(self) -> dict[str, Any]:
        return {"taken": self.taken}

    def after_stage(self) -> dict[str, Any]:
        return self.state()
