"""Count tokens, hidden units and answers in the rows of a track, for statistics."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from unmask.batch import Batch, Vocabulary
from unmask.explanation.hidden_units import WAYS, HiddenTokens, Made, moves, of_runs, units
from unmask.recipe import FullTrack

Counts = dict[str, Counter[Any]]  # for each name, how often each value occurs


def add(total: Counts, more: Counts) -> None:
    """Add counts to the counts so far."""
    for name, found in more.items():
        total.setdefault(name, Counter()).update(found)


def counts(name: str, track: FullTrack, made: Made, vocabulary: Vocabulary) -> Counts:
    """The counts of the rows of a track."""
    batch, found = made.before, units(made)  # rules may remove tokens
    hidden, sizes = ~found.moved, found.end - found.start + 1
    unknown = batch.ids == (-1 if vocabulary.unknown is None else vocabulary.unknown)
    ways = [way for tokens in made.hidden if not moves(tokens.rule) for way in _ways(tokens, batch.shape[1])]
    labels = batch.label[made.batch.counted > 0].tolist() if track.arrange.classes else []
    return {
        "rows": Counter(all=len(batch.ids)),
        "tokens": Counter(all=int(batch.real.sum())),
        "text": Counter(all=int(batch.text.sum())),
        "unknown": Counter(all=int((batch.text & unknown).sum())),
        "examples": Counter(all=int((batch.example.amax(1) + 1).sum())),
        "predicted": Counter(all=_predicted(made.batch.decoder or made.batch)),
        "hidden": Counter(all=int(sizes[hidden].sum())),
        "moved": Counter(all=int(sizes[~hidden].sum())),
        "units": Counter(all=int(hidden.sum())),
        "how": Counter(ways),
        "words": Counter(found.words[hidden].tolist()),
        "pieces": Counter(sizes[hidden].tolist()),
        "views": Counter({name: len(batch.ids)}),
        "levels": Counter(made.level),
        "answers": Counter(track.arrange.answers[label] for label in labels),
    }


def _ways(tokens: HiddenTokens, length: int) -> list[str]:
    """How each hidden token is hidden, or each run of neighbouring hidden tokens."""
    how = of_runs(tokens, length) if tokens.rule.replace.draw == "span" else tokens.how
    return [WAYS[way] for way in how.tolist()]


def _predicted(batch: Batch) -> int:
    """The number of tokens that are predicted at least once."""
    places = [targets.where[targets.weight > 0].numpy() for targets in batch.targets.values()]
    return len(np.unique(np.concatenate(places))) if places else 0
