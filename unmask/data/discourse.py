"""Discourse: pairs of texts that a connective joins. The connective is removed, and the class is its relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unmask.data.arrange import TRACK, Runs, render
from unmask.data.pairs import CUT, READ, Pairs, truncate
from unmask.data.shards import Texts
from unmask.errors import require
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.text.columns import BEGINS
from unmask.text.connectives import RELATIONS, table

COMMAS = (",", "，")


@dataclass(frozen=True)
class Discourse(Pairs):
    """Two texts that were joined by a connective, which is removed; the class is its relation (ERNIE 2.0, after Sileo 2019).

    The connective begins a sentence, and the first text is the sentence before it; or it follows a comma inside a sentence."""

    language: str = "en"  # of the table of connectives
    file: str | None = None  # more connectives: in each line a connective, a tab and a relation

    classes: ClassVar[int] = len(RELATIONS)
    answers: ClassVar[tuple[str, ...]] = RELATIONS
    packed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        table(self.language, self.file)

    @property
    def gives(self) -> frozenset[str]:
        return super().gives | {"connectives"}

    def ready(self, tokenizer: Tokenizer) -> Found:
        return Found(self, Connectives.of(table(self.language, self.file), tokenizer))

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        raise NotImplementedError("connectives are found by their tokens: call `ready` with a tokenizer first")


@dataclass(frozen=True)
class Connectives:
    """The connectives as tokens."""

    spelled: dict[int, list[tuple[tuple[int, ...], int]]]  # by first token: tokens and relation, the longest first
    commas: np.ndarray  # ids

    @classmethod
    def of(cls, words: dict[str, str], tokenizer: Tokenizer) -> Connectives:
        """Each connective as written, with a capital letter, and with a space before it: tokenizers may tell these apart."""
        found: dict[tuple[int, ...], int] = {}
        for word, relation in words.items():
            for form in (word, word[:1].upper() + word[1:]):
                for spelled in (form, f" {form}"):
                    ids = tuple(tokenizer.encode(spelled))
                    if ids and tokenizer.vocabulary.unknown not in ids:
                        found.setdefault(ids, RELATIONS.index(relation))
        first: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for ids in sorted(found, key=len, reverse=True):
            first.setdefault(ids[0], []).append((ids, found[ids]))
        commas = {tokenizer.encode(f"x{comma}")[-1] for comma in COMMAS}
        return cls(
            first, np.array(sorted(commas - {tokenizer.vocabulary.unknown, tokenizer.encode("x")[-1]}), np.int64)
        )


@dataclass(frozen=True)
class Found:
    """The arrangement, with a tokenizer."""

    part: Discourse
    connectives: Connectives

    @property
    def packed(self) -> bool:
        return self.part.packed

    def runs(self, texts: Texts, layout: str, length: int, rng: Any) -> Runs:
        room = length - layouts.overhead(layout, 2)
        found = np.array(self.pairs(texts), np.int64).reshape(-1, 5)
        require(
            len(found) > 0,
            "no connective of the language {language!r} joins two texts of this data: set tracks.{track}.arrange.language to its "
            "language, give a file with tracks.{track}.arrange.file, or leave the task out with schedule.*.turns.{track}=0",
            track=TRACK,
            language=self.part.language,
        )
        a, b = found[:, 0:2].copy(), found[:, 2:4].copy()
        total = int((a[:, 1] - a[:, 0] + b[:, 1] - b[:, 0]).sum())
        cut = truncate(a, b, room, rng)
        notes: Counter[str] = Counter({CUT: int(cut.sum()), READ: total} if cut.any() else {})
        return render({"a": a, "b": b}, found[:, 4], layout, len(texts.ids), notes)

    def pairs(self, texts: Texts) -> list[tuple[int, int, int, int, int]]:
        """(a0, a1, b0, b1, relation) in tokens."""
        ids, begins = texts.ids, texts.sentence
        commas, known = (_table(some, ids)[ids] for some in (self.connectives.commas, list(self.connectives.spelled)))
        inner = np.zeros(len(ids) + 1, bool)  # places after a comma, within a sentence
        inner[1:] = commas
        opens = np.zeros(len(ids) + 1, bool)  # places where a sentence begins, but no document
        opens[begins] = True
        inner &= ~opens
        opens[begins[texts.document]] = False
        places = np.flatnonzero((inner | opens)[:-1] & known)
        sentence = np.searchsorted(begins, places, side="right") - 1
        after = self._after(texts, commas)
        found = []
        for place, number, whole in zip(places.tolist(), sentence.tolist(), opens[places].tolist(), strict=True):
            end, stop = begins[number], int(begins[number + 1])
            match = after(place, stop)
            if match is None:
                continue
            b0, relation = match
            a0, a1 = (int(begins[number - 1]), int(end)) if whole else (int(end), place - 1)  # without the comma
            if a1 > a0 and stop > b0:
                found.append((a0, a1, b0, stop, relation))
        return found

    def _after(self, texts: Texts, commas: np.ndarray) -> Any:
        """A function of a place and of the end of its sentence: the token after the connective and its comma, and the relation;
        None if there is no connective."""
        ids, marks = texts.ids, texts.columns["word"].values

        longest = max((len(ids) for found in self.connectives.spelled.values() for ids, _ in found), default=1)

        def after(place: int, stop: int) -> tuple[int, int] | None:
            following = tuple(ids[place : place + longest].tolist())
            for spelled, relation in self.connectives.spelled[following[0]]:
                end = place + len(spelled)
                whole = end < stop and marks[end] == BEGINS  # "so" is not a part of "some"
                if whole and following[: len(spelled)] == spelled:
                    return end + int(commas[end]), relation
            return None

        return after


def _table(tokens: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """For each token of the vocabulary, whether it is one of these; as long as the largest id needs."""
    found = np.zeros(1 + max(int(ids.max(initial=0)), *(int(token) for token in tokens), 0), bool)
    found[list(tokens)] = True
    return found
