"""Tags that mark spans (BIO, BIOES): which scheme they follow, whether a sequence keeps it, and the F1 of the spans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

Scheme = Literal["BIO", "BIOES", "plain"]
Entity = tuple[str, int, int]  # its type, its first word, the word after its last

_TAG = re.compile(r"([BIMES])-(.+)")
OUTSIDE = "O"


def scheme_of(tags: Iterable[str]) -> Scheme:
    """The scheme of all tags of a data set. Tags that do not mark spans, such as parts of speech, are plain."""
    found = [_TAG.fullmatch(tag) for tag in set(tags) - {OUTSIDE}]
    prefixes = {match[1] for match in found if match}
    if None in found or not prefixes:
        return "plain"
    return "BIOES" if prefixes & {"E", "S", "M"} else "BIO"


def broken(tags: Sequence[str], scheme: Scheme) -> tuple[int, str] | None:
    """The index of the first tag that breaks the scheme, and why; None if the sequence keeps it."""
    if scheme == "plain":
        return None
    for place, tag in enumerate([*tags, OUTSIDE]):
        before = tags[place - 1] if place else OUTSIDE
        (last, last_type), (first, own_type) = _parts(before), _parts(tag)
        inside = first in "IE" and tag != OUTSIDE
        open_ = last in ("BI" if scheme == "BIOES" else "")  # an entity of BIOES must end with E
        if inside and (last not in "BI" or before == OUTSIDE or last_type != own_type):
            return place, f"{tag!r} follows {before!r}, but it must follow B-{own_type} or I-{own_type}"
        if open_ and before != OUTSIDE and not inside:
            end = "the end" if place == len(tags) else repr(tag)
            return (
                place - 1,
                f"{before!r} is followed by {end}, but it must be followed by I-{last_type} or E-{last_type}",
            )
    return None


def entities(tags: Sequence[str]) -> list[Entity]:
    """The spans of a sequence, also of a broken one: a tag that cannot continue the span before it begins a new one.

    These are the rules of the CoNLL-2000 scorer."""
    found: list[Entity] = []
    begin: int | None = None
    for place, tag in enumerate([*tags, OUTSIDE]):
        before = tags[place - 1] if place else OUTSIDE
        (last, last_type), (first, own_type) = _parts(before), _parts(tag)
        goes_on = before != OUTSIDE and tag != OUTSIDE and last in "BI" and first in "IE" and last_type == own_type
        if begin is not None and not goes_on:
            found.append((last_type, begin, place))
            begin = None
        if begin is None and tag != OUTSIDE:
            begin = place
    return found


def span_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, object]:
    """Precision, recall and F1 of the spans of all sequences (micro), and of each type."""
    wanted, given, right = Counter[str](), Counter[str](), Counter[str]()
    for own, answer in zip(truth, predicted, strict=True):
        a, b = set(entities(own)), set(entities(answer))
        for counter, some in ((wanted, a), (given, b), (right, a & b)):
            counter.update(kind for kind, _, _ in some)
    per_type = {kind: _f1(right[kind], given[kind], wanted[kind]) for kind in sorted(wanted | given)}
    return _f1(right.total(), given.total(), wanted.total()) | {"per_type": per_type}


def _f1(right: int, given: int, wanted: int) -> dict[str, object]:
    """The scores from counts; 0 if a score is undefined."""
    return {
        "f1": 2 * right / max(1, given + wanted),
        "precision": right / max(1, given),
        "recall": right / max(1, wanted),
        "support": wanted,
    }


def _parts(tag: str) -> tuple[str, str]:
    """The prefix and the type of a tag. M, of Chinese data sets, is I."""
    match = _TAG.fullmatch(tag)
    return (tag, "") if match is None else ("I" if match[1] == "M" else match[1], match[2])
