"""Minimal pairs: two sentences that differ in little, of which only one is acceptable (BLiMP, Warstadt et al. 2020).

A pair is right if the model scores the good sentence higher. Equal scores are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import require
from unmask.evaluate.sentence_scores import trace_sentences
from unmask.evaluate.sentence_way import ways_of
from unmask.infer.likelihood import machine_of
from unmask.infer.model import Model
from unmask.tasks._rows import read_rows

COLUMNS = ("good", "bad")  # a file with these columns holds minimal pairs
PARADIGM = "paradigm"
_TIED = "pairs have different sentences with equal scores, so they count as wrong"
_EQUAL = "pairs have two equal sentences, so they count as wrong; the first is {where}"  # BLiMP has seven


@dataclass(frozen=True)
class Pair:
    """An acceptable sentence and an unacceptable one."""

    good: str
    bad: str
    paradigm: str | None = None  # what the pair tests; None: the file does not say
    where: str = "a pair"  # its name in error messages


def read_pairs(file: str | Path) -> list[Pair]:
    """The pairs of a file: JSON lines or CSV with the columns `good`, `bad` and, if all lines have it, `paradigm`."""
    pairs = [_pair(row, f"{file}, line {number:,}") for number, row in read_rows(Path(file))]
    require(
        bool(pairs),
        '{file} holds no pairs: write lines such as {{"good": "She sleeps.", "bad": "She sleep."}}',
        file=file,
    )
    named = sum(pair.paradigm is not None for pair in pairs)
    odd = next((pair for pair in pairs if pair.paradigm is None), pairs[0])
    require(
        named in (0, len(pairs)),
        "{where}: the pair has no paradigm, but {named:,} pairs of the file have one: give all pairs a paradigm, or none",
        where=odd.where,
        named=named,
    )
    return pairs


def _pair(row: Mapping[str, Any], where: str) -> Pair:
    for name in COLUMNS:
        value = row.get(name)
        require(
            isinstance(value, str) and bool(value.strip()),
            "{where}: {name!r} must be a sentence, got {value!r:.60}: write a text, or remove the line",
            where=where,
            name=name,
            value=value,
        )
    paradigm = row.get(PARADIGM)
    require(
        paradigm is None or (isinstance(paradigm, str) and bool(paradigm.strip())),
        "{where}: paradigm must be a name, got {paradigm!r:.60}: write a text, or leave it out in all lines",
        where=where,
        paradigm=paradigm,
    )
    return Pair(row["good"], row["bad"], paradigm, where)


def evaluate_pairs(model: Model, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The accuracy of a model on minimal pairs."""
    *_, last = trace_pairs(model, pairs)
    return last


def trace_pairs(model: Model, pairs: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Score pairs, yielding a record per pass. The last record holds the accuracies, how they were measured, and `notes`."""
    ways, begun, record = ways_of(model), time.perf_counter(), {}
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    for record in trace_sentences(model, texts, where=[pair.where for pair in pairs for _ in COLUMNS]):
        if "scores" not in record:
            yield record
    good, bad = record["scores"].reshape(-1, 2).T
    each = {name: _accuracies(pairs, np.greater(*scores.reshape(-1, 2).T)) for name, scores in record["by_way"].items()}
    yield _accuracies(pairs, good > bad) | {
        "way": " + ".join(way.name for way in ways),
        "by_way": {name: found["mean_over_paradigms"] or found["accuracy"] for name, found in each.items()},
        "track": " + ".join(way.track for way in ways) if model.recipe.tracks else None,
        "precision": "bfloat16" if machine_of(model).half else "float32",
        "pairs_per_second": len(pairs) / (time.perf_counter() - begun),
        "notes": record["notes"] | _ties(pairs, good == bad),
    }


def _ties(pairs: Sequence[Pair], tied: np.ndarray) -> dict[str, int]:
    """The notes about pairs of equal sentences, and of other sentences with equal scores."""
    equal = [pair.where for pair in pairs if pair.good == pair.bad]
    others = int(tied.sum()) - len(equal)
    return ({_EQUAL.format(where=equal[0]): len(equal)} if equal else {}) | ({_TIED: others} if others else {})


def _accuracies(pairs: Sequence[Pair], right: np.ndarray) -> dict[str, Any]:
    """The accuracy over all pairs, the mean over paradigms (None without paradigms), and the paradigms by name."""
    by_name: dict[str, list[bool]] = {}
    for pair, one in zip(pairs, right.tolist(), strict=True):
        if pair.paradigm is not None:
            by_name.setdefault(pair.paradigm, []).append(one)
    paradigms = [
        {"paradigm": name, "pairs": len(found), "accuracy": float(np.mean(found))}
        for name, found in sorted(by_name.items())
    ]
    return {
        "pairs": len(pairs),
        "accuracy": float(right.mean()),
        "mean_over_paradigms": float(np.mean([one["accuracy"] for one in paradigms])) if paradigms else None,
        "paradigms": paradigms,
    }
