"""Titles: a title and a text: of one document, of two documents that are near, or of any two; from documents, or from a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from unmask.data.arrange import TRACK, Runs, render
from unmask.data.chunks import chunks
from unmask.data.group_reader import GroupReader
from unmask.data.pairs import CUT, READ, Pairs, truncate
from unmask.data.shards import Collection, Shard, Texts
from unmask.errors import require
from unmask.text import Tokenizer, encode_documents
from unmask.text import layout as layouts
from unmask.text.boundaries import available
from unmask.text.columns import Column
from unmask.text.lines import numbered_lines

OWN, NEAR, OTHER = range(3)
ANSWERS = ("its title", "the title of a near document", "a title drawn at random")
PLACES = 4  # a title has at most this part of a row
FREQUENT = 10  # a token of more than a tenth of the titles says nothing about them
HELD_OUT = 50  # every 50th line of a file of pairs is held out
RELEVANCE = "relevance"  # the column of pairs from a file: their class


@dataclass(frozen=True)
class TitleRelevance(Pairs):
    """A title and a part of a document: its own title, that of a near document, or one drawn at random (ERNIE 2.0).

    The first sentence or line of a document is its title. A near document has the rarest word of the title in its own."""

    classes: ClassVar[int] = len(ANSWERS)
    answers: ClassVar[tuple[str, ...]] = ANSWERS
    packed: ClassVar[bool] = True

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        notes: Counter[str] = Counter()
        room = length - layouts.overhead(layout, 2)
        most, documents = max(1, room // PLACES), len(texts.document) - 1
        found = chunks(texts, room - most, "title relevance", notes, parts=1, least=2, skip=1)
        require(
            len(found) > 0 and documents > 1,
            "title relevance needs two documents or more, of two sentences or more: separate sentences by line breaks or full "
            "stops and documents by blank lines, or leave the task out with schedule.*.turns.{track}=0",
            track=TRACK,
        )
        first = texts.document[:-1]
        titles = np.stack((texts.sentence[first], texts.sentence[first + 1]), 1)
        titles[:, 1] = np.minimum(titles[:, 1], titles[:, 0] + most)
        near = near_documents(texts.ids, titles, rng)[found.document]
        label, drawn = rng.integers(0, 3, len(found)), rng.random(len(found))
        label[(label == NEAR) & (near < 0)] = OWN
        other = (found.document + 1 + (drawn * (documents - 1)).astype(np.int64)) % documents
        spans = {"a": titles[np.choose(label, (found.document, near.clip(0), other))],
                 "b": np.stack((found.begin, found.end), 1)}  # fmt: skip
        return render(spans, label, layout, len(texts.ids), notes)


def near_documents(ids: np.ndarray, titles: np.ndarray, rng: Any) -> np.ndarray:
    """For each document another one whose title has the rarest token that both titles share; -1 if there is none."""
    sizes = titles[:, 1] - titles[:, 0]
    owner = np.repeat(np.arange(len(titles)), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + titles[owner, 0]
    size = int(ids.max(initial=0)) + 1
    owner, token = np.divmod(np.unique(owner * size + ids[place]), size)  # each token of a title once
    count = np.bincount(token)[token]  # titles that have it
    shared = np.lexsort((count, owner))
    shared = shared[(count[shared] > 1) & (count[shared] <= max(2, len(titles) // FREQUENT))]
    rarest = shared[np.unique(owner[shared], return_index=True)[1]]  # for each document, the place of its rarest token
    by_token = np.lexsort((owner, token))
    begin = np.searchsorted(token[by_token], token[rarest])
    # one of the other documents with this token: a document finds itself at `mine`
    mine = (
        np.searchsorted(owner[by_token] + token[by_token] * len(titles), owner[rarest] + token[rarest] * len(titles))
        - begin
    )
    turn = (mine + 1 + (rng.random(len(rarest)) * (count[rarest] - 1)).astype(np.int64)) % count[rarest]
    found = np.full(len(titles), -1, np.int64)
    found[owner[rarest]] = owner[by_token][begin + turn]
    return found


@dataclass(frozen=True)
class TitlePairs(Pairs):
    """Queries and titles from a file, with how well they fit (ERNIE 2.0).

    Each line is a query, a tab, a title, a tab and 0 (it fits well), 1 (it is near) or 2 (it does not fit)."""

    file: str = "pairs.tsv"

    classes: ClassVar[int] = 3
    answers: ClassVar[tuple[str, ...]] = ("it fits well", "it is near", "it does not fit")
    packed: ClassVar[bool] = True

    def open(
        self, collection: Collection, tokenizer: Tokenizer, layout: str, length: int, seed: int, *, shuffled: bool = True
    ) -> GroupReader:  # fmt: skip
        """The reader of the file; the documents of the data are not read. Every 50th line is held out."""
        lines = [line for number, line in enumerate(_lines(Path(self.file))) if (number % HELD_OUT > 0) == shuffled]
        require(
            bool(lines),
            "{file} has no pair to {use}: give two lines or more, because the first and then every {every}th line is held out",
            file=self.file,
            use="train on" if shuffled else "hold out",
            every=HELD_OUT,
        )
        return GroupReader(Collection([_shard(lines, tokenizer)]), tokenizer, self, layout, length, seed)

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        require(
            RELEVANCE in texts.columns,
            "the rows of this track come from {file}, not from a text: explain another track",
            file=self.file,
        )
        begins = texts.sentence[:-1:2]
        a, b = np.stack((begins, texts.sentence[1::2]), 1), np.stack((texts.sentence[1::2], texts.sentence[2::2]), 1)
        total, cut = len(texts.ids), truncate(a, b, length - layouts.overhead(layout, 2), rng)
        notes: Counter[str] = Counter({CUT: int(cut.sum()), READ: total} if cut.any() else {})
        return render({"a": a, "b": b}, texts.columns[RELEVANCE].values[begins].astype(np.int64), layout, total, notes)


def _lines(file: Path) -> list[tuple[str, str, int]]:
    found = []
    for number, line in numbered_lines(file):
        query, title, label = (part.strip() for part in (*line.split("\t"), "", "", "")[:3])
        if line.strip():
            require(
                bool(query) and bool(title) and label in ("0", "1", "2"),
                "{file}, line {number:,}: a line must be a query, a tab, a title, a tab and 0, 1 or 2, got {line!r}",
                file=file,
                number=number,
                line=line,
            )
            found.append((query, title, int(label)))
    return found


def _shard(lines: list[tuple[str, str, int]], tokenizer: Tokenizer) -> Shard:
    """The pairs as documents of two sentences: the query and the title."""
    both = [text for query, title, _ in lines for text in (query, title)]
    texts = Texts.of(encode_documents(both, tokenizer, available("auto")))
    labels = np.repeat(np.array([label for *_, label in lines], np.int8), 2)
    tokens = np.diff(texts.sentence[texts.document])
    relevance = Column(np.repeat(labels, tokens), "value", -1)
    edges = np.concatenate(([0], np.cumsum(tokens)))
    return Shard(texts.ids, edges, np.arange(0, len(edges), 2), texts.columns | {RELEVANCE: relevance})
