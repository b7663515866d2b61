"""What hiding made of rows, read off the batch: the hidden units and how each is hidden, and what each row drew."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from torch import Tensor

from unmask import see
from unmask.batch import Batch, Vocabulary
from unmask.hide import Levels
from unmask.hide.units import level_of
from unmask.recipe import Recipe

How = Literal["mask", "random", "keep", "moved"]  # what stands in place of a hidden token; moved: one of its neighbours
HOWS: tuple[How, ...] = get_args(How)

_VIEWS = {"everything": see.Everything, "prefix": see.Prefix, "left": see.LeftToRight, "right": see.RightToLeft}
_LEVELS = {
    "token": "Every token, or word, is hidden by itself.",
    "phrase": "Phrases are hidden whole, and words where there is no phrase.",
    "entity": "Entities are hidden whole, and phrases and words where there is none.",
}


@dataclass(frozen=True)
class Made:
    """Rows as a network reads them, and what is no longer seen in them."""

    batch: Batch
    half: Tensor  # B T, 0 in the first text of an example, 1 in the second: the view may have numbered segments anew
    moved: np.ndarray  # N, True for targets that are there because their order was changed
    level: Tensor | None  # B, which of Levels the row took; None where there are none


@dataclass(frozen=True)
class Units:
    """The hidden units of a batch, an element each, in order of place; and their tokens."""

    start: np.ndarray  # flat index of the first token
    end: np.ndarray  # of the last
    moved: np.ndarray  # True where the unit is not covered, but put in another order
    words: np.ndarray  # how many words it has a part in
    places: np.ndarray  # flat index of each hidden token, in order
    how: np.ndarray  # of each hidden token: index into HOWS


class Share(NamedTuple):
    """One of the things that a row may draw."""

    name: str
    share: float  # of the rows
    meaning: str


def make(recipe: Recipe, hide: Any, batch: Batch, vocabulary: Vocabulary, seed: int) -> Made:
    """Hide, and say who sees whom, as training does."""
    drawn = recipe.see.draw(batch, seed)  # type: ignore[attr-defined]
    hidden = hide.apply(drawn, vocabulary, seed)
    seen = recipe.see.apply(hidden)  # type: ignore[attr-defined]
    return Made(seen, batch.segment, _moved(hide, drawn, hidden, vocabulary, seed), _level(hide, batch, seed))


def views(recipe: Recipe) -> list[Share]:
    """The views that a row may take, in the order of `Batch.mode`; none where all rows take the same."""
    if not isinstance(recipe.see, see.Mixed):
        return []
    shares = dataclasses.asdict(recipe.see)
    return [Share(name, share, (inspect.getdoc(_VIEWS[name]) or "").split("\n")[0]) for name, share in shares.items()]


def levels(hide: Any) -> list[Share]:
    """The levels that a row may take, in the order of `Made.level`; none where there are none."""
    units = getattr(hide, "units", None)
    if not isinstance(units, Levels):
        return []
    shares = {name: getattr(units, name) for name in _LEVELS}
    return [Share(name, share / sum(shares.values()), _LEVELS[name]) for name, share in shares.items()]


def units(made: Made, mask: int | None) -> Units:
    """The units that are hidden where they stand; a prediction of what stands further on belongs to none."""
    targets = made.batch.targets
    if targets is None:
        return Units(*(np.zeros(0, np.int64) for _ in range(6)))
    where, ids, start, end, weight = (
        column.numpy() for column in (targets.where, targets.ids, targets.start, targets.end, targets.weight)
    )
    used = np.flatnonzero((weight > 0) & (start <= where) & (where <= end))
    used = used[np.argsort(where[used])]
    places, moved = where[used], made.moved[used]
    first, at = np.unique(start[used], return_index=True)
    last = end[used][at]
    word = made.batch.word.flatten().numpy()
    how = _how(made.batch.ids.flatten().numpy()[places], ids[used], moved, mask)
    return Units(first, last, moved[at], word[last] - word[first] + 1, places, how)


def of_runs(found: Units, length: int) -> np.ndarray:
    """How each run of covered tokens that touch is hidden, in rows of this length: index into HOWS."""
    covered = found.how != HOWS.index("moved")
    places, how = found.places[covered], found.how[covered]
    begins = np.flatnonzero((np.diff(places, prepend=-2) != 1) | (places % length == 0))
    replaced = np.bincount(np.searchsorted(begins, np.arange(len(how)), "right") - 1, how == HOWS.index("random")) > 0
    return np.where(replaced, HOWS.index("random"), how[begins])


def _how(now: np.ndarray, before: np.ndarray, moved: np.ndarray, mask: int | None) -> np.ndarray:
    """How each token is hidden; a random token that is the one before by chance looks kept."""
    replaced = np.where(now != before, HOWS.index("random"), HOWS.index("keep"))
    covered = np.where(now == (-1 if mask is None else mask), HOWS.index("mask"), replaced)
    return np.where(moved, HOWS.index("moved"), covered)


def _moved(hide: Any, batch: Batch, hidden: Batch, vocabulary: Vocabulary, seed: int) -> np.ndarray:
    """Targets that would not be there if nothing were shuffled."""
    targets, shuffle = hidden.targets, getattr(hide, "shuffle", None)
    if targets is None or shuffle is None or not shuffle.budget:
        return np.zeros(0 if targets is None else len(targets.where), bool)
    in_order = dataclasses.replace(hide, shuffle=dataclasses.replace(shuffle, budget=0.0))
    others = in_order.apply(batch, vocabulary, seed).targets
    covered = others.where[others.weight > 0].numpy()
    return ~np.isin(targets.where.numpy(), covered) & (targets.weight.numpy() > 0)


def _level(hide: Any, batch: Batch, seed: int) -> Tensor | None:
    """B, the level that each row takes; None where there are none."""
    if not levels(hide):
        return None
    visit = batch.visit if hide.copies is None else batch.visit % hide.copies
    return level_of(hide.units, batch, seed, visit)
