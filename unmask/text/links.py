"""Links: which words of a text are entities of a knowledge graph. They become the column `links` (ERNIE of THU).

The names of all entities are found as a lexicon's entries are. A name that several entities have is given to one of them:
the one with the most triples (`prior`), or the one whose vector is nearest to those of the other entities of the document
(`context`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unmask.errors import UserError, require, unknown
from unmask.text.knowledge_graph import left_out
from unmask.text.lexicon import find_names, finder_of

LINKED = "links to entities of the graph"  # the note that counts them in prepared data
LINKS = "links"  # the column: the number of the entity at the first token of its name, -1 at other tokens
UNLINKED = -1
By = Literal["prior", "context"]
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_BY: dict[str, By] = {"prior": "prior", "context": "context"}


@dataclass(frozen=True)
class Mention:
    """Some characters of a text, and the entity that they name."""

    start: int  # the first character
    end: int  # the character after the last
    entity: str  # its id in the graph


@dataclass(frozen=True)
class KnownEntities:
    """The entities of a graph: what a linker is made from."""

    ids: Sequence[str]
    names: Sequence[Sequence[str]]  # of each entity
    triples: np.ndarray  # of each entity: how many it is in
    vectors: np.ndarray  # of each entity
    fingerprint: str  # of the graph


class Linker:
    """Finds the entities of a graph in texts. Forked processes share it; a spawned process builds it again."""

    def __init__(self, known: KnownEntities, by: str = "prior") -> None:
        if by not in _BY:
            raise unknown("way to choose between entities of one name", by, _BY)
        self.known, self.by = known, _BY[by]
        self.numbers = {entity: number for number, entity in enumerate(known.ids)}
        self.notes: Counter[str] = Counter()
        candidates: dict[str, list[int]] = {}
        for number, names in enumerate(known.names):
            for name in names:
                reason = left_out(name)
                if reason is None:
                    candidates.setdefault(name, []).append(number)
                else:
                    self.notes[f"names {reason}, never linked"] += 1
        require(
            bool(candidates),
            "no entity of the graph has a name that can be found in text: give names with 'unmask graph --names FILE'",
        )
        # of each name, the entity with the most triples first
        self.candidates = [sorted(several, key=lambda one: -known.triples[one]) for several in candidates.values()]
        self.first = np.array([several[0] for several in self.candidates], dtype=np.int64)
        self.several = np.array([len(several) > 1 for several in self.candidates])
        self.finder = finder_of(list(candidates))

    def __reduce__(self) -> tuple[Any, ...]:
        return Linker, (self.known, self.by)

    @property
    def record(self) -> dict[str, Any]:
        """What a manifest says about it."""
        entities, dims = self.known.vectors.shape
        return {"graph": self.known.fingerprint, "entities": entities, "dims": dims, "by": self.by}

    def matches(
        self, text: str, kinds: np.ndarray, begins: np.ndarray, documents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """M 2 and M: start and end of every name in a text, and its entity. `kinds`: the class of each character. `begins`:
        True on characters that begin a word. `documents`: where each document begins."""
        spans, names = find_names(self.finder, text, kinds, begins=begins)
        chosen = self.first[names]
        unclear = np.flatnonzero(self.several[names]) if self.by == "context" else ()
        if len(unclear):
            document = np.searchsorted(documents, spans[:, 0], side="right")
            low, high = (np.searchsorted(document, document, side=side) for side in _SIDES)
            for place in unclear:
                own = slice(low[place], high[place])  # all names of the same document
                sure = chosen[own][~self.several[names[own]]]
                chosen[place] = self._nearest(self.candidates[names[place]], sure, chosen[place])
        return spans, chosen

    def _nearest(self, candidates: list[int], sure: np.ndarray, usual: int) -> int:
        """The candidate that is nearest to these entities; the usual one if there are none."""
        if not len(sure):
            return usual
        context = self.known.vectors[np.unique(sure)].sum(0)
        return candidates[int(np.argmax(self.known.vectors[candidates] @ context))]


def mentions_of(value: Any, text: str, field: str, where: str) -> tuple[Mention, ...]:
    """The mentions that a text brings. Mentions without an id are left out: they are not entities of the graph.

    `field`: the name of the id in a mention."""
    wanted = f'a list of {{"start": NUMBER, "end": NUMBER, "{field}": ID}}, in characters of the text'
    if not isinstance(value, list):
        raise UserError(
            '{where}: "mentions" must be {wanted}, got {value!r:.40}', where=where, wanted=wanted, value=value
        )
    found = []
    for one in value:
        start, end = (one.get("start"), one.get("end")) if isinstance(one, dict) else (None, None)
        entity = one.get(field) if isinstance(one, dict) else None
        good = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)
        require(
            good and (entity is None or isinstance(entity, str)),
            '{where}: "mentions" must be {wanted}; one is {one!r:.60}, and the text has {length:,} characters',
            where=where,
            wanted=wanted,
            one=one,
            length=len(text),
        )
        if entity is not None and isinstance(start, int) and isinstance(end, int):
            found.append(Mention(start, end, " ".join(entity.split())))
    return tuple(sorted(found, key=lambda mention: mention.start))
