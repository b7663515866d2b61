"""Concatenation: all documents of a data set end to end, forward or backward, with random access to any part.

Nothing is copied: a place is a document and an offset, found by bisection. Backward, the documents come from the last
to the first, and each is read from its end to its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unmask.data.shards import Collection, Shard, Texts
from unmask.text.columns import BEGINS, Column, backward_marks

TEXT = -1  # the role of text, which is not a special token


@dataclass(frozen=True)
class Pieces:
    """Parts of a concatenation as runs of tokens; each run is in one document. Sorted by part and place."""

    part: np.ndarray  # the number of the requested part
    role: np.ndarray  # number of the special token in `arrange.ROLES`, or TEXT
    shard: np.ndarray
    start: np.ndarray  # index in its shard of the first token to read
    length: np.ndarray


@dataclass(frozen=True)
class _Spans:
    """The same as `Pieces`, before the shards are known."""

    part: np.ndarray
    document: np.ndarray  # place in the order of documents
    role: np.ndarray
    at: np.ndarray  # place in the concatenation
    offset: np.ndarray  # in the text of the document, in reading order
    length: np.ndarray


class Concatenation:
    """Documents in an order, each with special tokens before and after it (numbers of `arrange.ROLES`)."""

    def __init__(
        self, collection: Collection, order: np.ndarray, before: tuple[int, ...], after: tuple[int, ...],
        backward: bool = False,
    ) -> None:  # fmt: skip
        self.collection, self.order, self.before, self.after, self.backward = collection, order, before, after, backward
        self.gap = len(before) + len(after)  # special tokens between two documents
        self.texts = collection.lengths[order]
        self.ends = np.cumsum(self.texts + self.gap)

    def __len__(self) -> int:
        return int(self.ends[-1])

    @cached_property
    def reversed(self) -> Concatenation:
        """The same text from its end to its beginning."""
        return Concatenation(self.collection, self.order[::-1], self.after[::-1], self.before[::-1], not self.backward)

    def pieces(self, low: np.ndarray, high: np.ndarray) -> Pieces:
        """The tokens of the parts from `low` to `high`, without `high`. No part may be empty."""
        spans = self._spans(low, high)
        shard, first = self.collection.places(self.order[spans.document])
        start = first + spans.offset
        if self.backward:
            start = first + self.texts[spans.document] - 1 - spans.offset
        return Pieces(spans.part, spans.role, shard, start, spans.length)

    def read(self, pieces: Pieces) -> tuple[Texts, np.ndarray]:
        """The texts of the pieces, concatenated in reading order; and where each piece begins in them. A special token begins
        after their end."""
        text = np.flatnonzero(pieces.role == TEXT)
        begin = np.cumsum(pieces.length[text]) - pieces.length[text]
        count = int(pieces.length[text].sum())
        ids, sentence = np.empty(count, np.int64), np.zeros(count, bool)
        columns = {n: np.empty((count, *c.shape), c.values.dtype) for n, c in self.collection.columns.items()}
        for number in np.unique(pieces.shard[text]):
            mine = pieces.shard[text] == number
            where = _Where(begin[mine], pieces.start[text][mine], pieces.length[text][mine], self.backward)
            _copy(self.collection.shards[number], where, ids, columns, sentence)
        starts = count + pieces.role
        starts[text] = begin
        begins = np.append(np.flatnonzero(sentence), count)
        found = {name: replace(self.collection.columns[name], values=values) for name, values in columns.items()}
        return Texts(ids, begins, np.array([0, len(begins) - 1]), found), starts

    def sentence_ends(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sentences that end in each part: the part, the place after the sentence, and the place where the next text begins."""
        spans = self._spans(low, high)
        text = spans.role == TEXT
        part, document, at, offset, length = (
            column[text] for column in (spans.part, spans.document, spans.at, spans.offset, spans.length)
        )
        shard, first = self.collection.places(self.order[document])
        whole, found = self.texts[document], []
        for number in np.unique(shard):
            mine = np.flatnonzero(shard == number)
            sentences = self.collection.shards[number].sentence
            begin, end = offset[mine], offset[mine] + length[mine]
            if self.backward:
                first_of = np.searchsorted(sentences, first[mine] + whole[mine] - end, side="left")
                last_of = np.searchsorted(sentences, first[mine] + whole[mine] - begin, side="left")
            else:
                first_of = np.searchsorted(sentences, first[mine] + begin, side="right")
                last_of = np.searchsorted(sentences, first[mine] + end, side="right")
            owner, index = ranges(first_of, last_of)
            inside = sentences[index] - first[mine][owner]
            inside = whole[mine][owner] - inside if self.backward else inside
            found.append((mine[owner], inside))
        span = np.concatenate([np.zeros(0, np.int64), *(owner for owner, _ in found)])
        inside = np.concatenate([np.zeros(0, np.int64), *(place for _, place in found)])
        place = at[span] - offset[span] + inside
        order = np.lexsort((place, part[span]))
        following = place + np.where(inside == whole[span], self.gap, 0)
        return part[span][order], place[order], following[order]

    def sentence_start(self, at: np.ndarray) -> np.ndarray:
        """For each place, where the sentence of its token begins. A special token belongs to the text next to it."""
        document = np.searchsorted(self.ends, at, side="right")
        whole = self.texts[document]
        text = self.ends[document] - len(self.after) - whole
        inside = np.clip(at - text, 0, whole - 1)
        shard, first = self.collection.places(self.order[document])
        found = np.empty_like(at)
        for number in np.unique(shard):
            mine = shard == number
            sentences = self.collection.shards[number].sentence
            if self.backward:
                index = first[mine] + whole[mine] - 1 - inside[mine]
                after = sentences[np.searchsorted(sentences, index, side="right")]
                found[mine] = first[mine] + whole[mine] - after
            else:
                index = first[mine] + inside[mine]
                found[mine] = sentences[np.searchsorted(sentences, index, side="right") - 1] - first[mine]
        return text + found

    def _spans(self, low: np.ndarray, high: np.ndarray) -> _Spans:
        first = np.searchsorted(self.ends, low, side="right")
        part, document = ranges(first, np.searchsorted(self.ends, high - 1, side="right") + 1)
        # of the tokens before a text, of the text, and of the tokens after it
        lengths = np.ones((len(document), self.gap + 1), np.int64)
        lengths[:, len(self.before)] = self.texts[document]
        ends = (self.ends[document] - lengths.sum(1))[:, None] + np.cumsum(lengths, 1)
        begin = np.maximum(ends - lengths, low[part][:, None])
        end = np.minimum(ends, high[part][:, None])
        span, item = np.nonzero(end > begin)
        role = np.array([*self.before, TEXT, *self.after])[item]
        at = begin[span, item]
        offset = np.where(role == TEXT, at - (ends - lengths)[span, item], 0)
        return _Spans(part[span], document[span], role, at, offset, end[span, item] - at)


def ranges(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers from each `first` to its `last`, without `last`. Returns the range of each number, and the numbers."""
    counts = last - first
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) + np.repeat(first - (np.cumsum(counts) - counts), counts)


@dataclass(frozen=True)
class _Where:
    """Parts of a shard, and where they are copied to."""

    begin: np.ndarray  # where the first token is copied to
    start: np.ndarray  # index in the shard of the first token to read
    length: np.ndarray
    backward: bool


def _copy(shard: Shard, where: _Where, ids: np.ndarray, columns: dict[str, np.ndarray], sentence: np.ndarray) -> None:
    """Fill in the ids, the columns and the sentence flags of some parts of a shard."""
    _, to = ranges(where.begin, where.begin + where.length)
    within = to - np.repeat(where.begin, where.length)
    index = np.repeat(where.start, where.length) + (-within if where.backward else within)
    ids[to] = shard.ids[index]
    for name, values in columns.items():
        values[to] = _entries(shard.columns[name], index, where.backward)
    # backward, a sentence begins with its last token: the token before the start of the next sentence
    start, length = where.start, where.length
    low, high = (start - length + 2, start + 2) if where.backward else (start, start + length)
    owner, which = ranges(np.searchsorted(shard.sentence, low), np.searchsorted(shard.sentence, high))
    inside = shard.sentence[which] - start[owner]
    sentence[where.begin[owner] + (1 - inside if where.backward else inside)] = True


def _entries(column: Column, index: np.ndarray, backward: bool) -> np.ndarray:
    """The entries of some tokens of a shard. Backward, a unit begins with its last token."""
    found = column[index].values
    if not backward or column.kind == "value":
        return found
    last = len(column) - 1
    following = np.where(index < last, column[np.minimum(index + 1, last)].values, BEGINS)
    return backward_marks(found, following)
