"""Cutting: rows as parts of a concatenation, either plain or followed by a pair of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from unmask.data.arrange import ROLES, Runs
from unmask.data.concatenation import TEXT, Concatenation, Pieces
from unmask.errors import require
from unmask.text import layout as layouts

Dice = Callable[[str], np.ndarray]  # a 63-bit number per row for each purpose


@dataclass(frozen=True)
class Parts:
    """Rows as parts of a concatenation and special tokens, sorted by row and place."""

    row: np.ndarray
    role: np.ndarray  # number of the special token in ROLES, or TEXT
    low: np.ndarray  # first place in the concatenation; unused for special tokens
    high: np.ndarray  # the place after the last
    segment: np.ndarray
    summary: np.ndarray  # per row: the part whose last token represents the row
    label: np.ndarray  # per row
    notes: Counter[str] = field(default_factory=Counter)


class Cutter(Protocol):
    """A way to cut a concatenation into rows of one length."""

    @property
    def advance(self) -> int:
        """The number of tokens that a stream advances with each row."""

    @property
    def reuse(self) -> int | None:
        """The number of tokens at the start of a row that a memory keeps; None: all."""

    @property
    def span(self) -> int:
        """The number of tokens that a row may reach from its beginning."""

    @property
    def both(self) -> bool:
        """Whether every second stream reads backward."""

    @property
    def before(self) -> tuple[int, ...]:
        """Special tokens before every document, as numbers of ROLES."""

    @property
    def after(self) -> tuple[int, ...]: ...

    def check(self, tokens: int) -> None:
        """Refuse a concatenation with too few tokens."""

    def cut(self, line: Concatenation, begin: np.ndarray, dice: Dice) -> Parts:
        """The rows that begin at these places."""


@dataclass(frozen=True)
class PlainRows:
    """Every row is the next part of the concatenation."""

    length: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    both = False
    reuse = None

    @classmethod
    def of(cls, layout: str, length: int) -> PlainRows:
        names = [item.name for item in layouts.items(layout, 1)]
        at = names.index("a")
        return cls(length, *(tuple(map(ROLES.index, side)) for side in (names[:at], names[at + 1 :])))

    @property
    def advance(self) -> int:
        return self.length

    @property
    def span(self) -> int:
        return self.length

    def check(self, tokens: int) -> None:
        """Every length is allowed."""

    def cut(self, line: Concatenation, begin: np.ndarray, dice: Dice) -> Parts:
        rows, none = np.arange(len(begin)), np.zeros(len(begin), np.int64)
        return Parts(rows, np.full(len(begin), TEXT), begin, begin + self.length, none, rows, none)


@dataclass(frozen=True)
class PairRows:
    """Every row is a part of the concatenation, then two texts in the given layout."""

    reuse: int
    room: int  # tokens for the two texts together
    random: float
    both: bool
    layout: str
    before = ()
    after = (ROLES.index("sep"),)

    @classmethod
    def of(cls, share: float, random: float, both: bool, layout: str, length: int) -> PairRows:
        """`share`: the share of a row that the memory keeps."""
        reuse = max(1, round(share * length))
        room = length - reuse - layouts.overhead(layout, 2)
        require(
            room >= 2,
            (
                "arrange.reuse={share} leaves no room for two texts in a row of {length} tokens: set "
                "arrange.reuse=0.5, or raise schedule.*.length"
            ),
            share=share,
            length=length,
        )
        return cls(reuse, room, random, both, layout)

    @property
    def advance(self) -> int:
        return self.reuse

    @property
    def span(self) -> int:
        return self.reuse + self.room + len(self.after)

    def check(self, tokens: int) -> None:
        require(
            tokens >= 3 * self.span or not self.random,
            (
                "a text of {tokens:,} tokens is too short to draw a second text of {room} tokens from another "
                "place: give more text, lower schedule.*.length, or set arrange.random=0"
            ),
            tokens=tokens,
            room=self.room,
        )

    def shortened(self, tokens: int) -> PairRows:
        """The same for a text shorter than a row: half of the text is for the memory, the other half becomes two texts."""
        texts = tokens - len(self.after)
        require(texts >= 3, "a row needs three tokens of text or more, got {texts}: give more text", texts=texts)
        reuse = min(self.reuse, texts // 2 if texts > 3 else 1)
        return replace(self, reuse=reuse, room=min(self.room, texts - reuse))

    def cut(self, line: Concatenation, begin: np.ndarray, dice: Dice) -> Parts:
        notes: Counter[str] = Counter()
        text = begin + self.reuse
        end, following = self._first_text(line, text, dice, notes)
        size = self.room - (end - text)
        drawn, elsewhere = self._elsewhere(line, begin, size, dice)
        second = np.where(drawn, elsewhere, following)
        spans = {"a": (text, end), "b": (second, second + size)}
        return self._rendered(begin, spans, drawn.astype(np.int64), notes)

    def _first_text(
        self, line: Concatenation, text: np.ndarray, dice: Dice, notes: Counter[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where each first text ends: at a random sentence end that leaves room for a second text; and where the next text
        begins."""
        row, end, following = line.sentence_ends(text, text + self.room - 1)
        count = np.bincount(row, minlength=len(text))
        drawn = dice("end of the first text")
        ends = text + 1 + drawn % (self.room - 1)  # at any token, if a sentence is too long
        after = ends.copy()
        some = count > 0
        chosen = (np.cumsum(count) - count)[some] + drawn[some] % count[some]
        ends[some], after[some] = end[chosen], following[chosen]
        if not some.all():
            notes["first texts that end within a sentence, because the sentence is too long"] = int((~some).sum())
        return ends, after

    def _elsewhere(
        self, line: Concatenation, begin: np.ndarray, size: np.ndarray, dice: Dice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which rows draw their second text from elsewhere, and from where: never from text that the row already holds."""
        end = begin + self.span
        left, right = np.maximum(begin - size + 1, 0), np.maximum(len(line) - size - end + 1, 0)
        place = dice("place of the second text") % np.maximum(left + right, 1)
        place = np.where(place < left, place, np.minimum(end + place - left, len(line) - 1))
        start = line.sentence_start(place)
        place = np.where((start + size <= begin) | (start >= end), start, place)
        chance_of_it = (dice("second text") >> 39) / (1 << 24)  # 24 random bits, as elsewhere
        return (chance_of_it < self.random) & (left + right > 0), place

    def _rendered(
        self, begin: np.ndarray, spans: dict[str, tuple[np.ndarray, np.ndarray]], label: np.ndarray, notes: Counter[str]
    ) -> Parts:
        items = layouts.items(self.layout, 2)
        low, high = [begin], [begin + self.reuse]
        role, segment = [TEXT], [0]
        for item in items:
            first, last = spans.get(item.name, (begin, begin))
            # one part together with the text for the memory, so that no word is cut
            if item.name == "a" and len(role) == 1:
                high[0] = last
                continue
            low.append(first)
            high.append(last)
            role.append(TEXT if item.is_text else ROLES.index(item.name))
            segment.append(item.segment)
        n, k = len(begin), len(role)
        summary = role.index(ROLES.index("cls")) if ROLES.index("cls") in role else k - 1
        return Parts(
            np.repeat(np.arange(n), k), np.tile(role, n), np.stack(low, 1).ravel(), np.stack(high, 1).ravel(),
            np.tile(segment, n), np.arange(n) * k + summary, label, notes,
        )  # fmt: skip


def laid(line: Concatenation, parts: Parts) -> tuple[Pieces, Runs]:
    """The rows as pieces of documents; and as examples, whose starts are filled in later."""
    text, special = np.flatnonzero(parts.role == TEXT), np.flatnonzero(parts.role != TEXT)
    found, none = line.pieces(parts.low[text], parts.high[text]), np.zeros(len(special), np.int64)
    part = np.concatenate((text[found.part], special))
    order = np.argsort(part, kind="stable")
    joined = [np.concatenate(pair)[order] for pair in (
        (found.role, parts.role[special]), (found.shard, none), (found.start, none), (found.length, none + 1),
    )]  # fmt: skip
    pieces = Pieces(part[order], *joined)
    summary = np.searchsorted(pieces.part, parts.summary, side="right") - 1
    return pieces, Runs(
        np.zeros(len(order), np.int64), pieces.length, parts.segment[pieces.part], parts.row[pieces.part], summary,
        parts.label, parts.notes,
    )  # fmt: skip
