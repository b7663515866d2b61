"""Which examples a model was trained on: a run keeps a number for each text, so that a test on the same texts is noticed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask.axes import Task

SEEN = "seen.npy"  # in a run folder: the numbers of the training examples, sorted
NOTE = "examples with the same text as a training example: their scores are too high"


def save_seen(folder: Path, *seen: tuple[Task, Sequence[Any]]) -> None:
    """Keep the numbers of the training examples of each task."""
    np.save(folder / SEEN, np.unique(np.concatenate([_numbers(task, examples) for task, examples in seen])))


def note_seen(folder: Path, task: Task, examples: Sequence[Any]) -> Counter[str]:
    """A note that counts the examples that the model of a run folder was trained on. Runs of older versions keep no numbers."""
    file = folder / SEEN
    if not file.is_file() or not len(examples):
        return Counter()
    count = int(np.isin(_numbers(task, examples), np.load(file)).sum())
    return Counter({NOTE: count} if count else {})


def _numbers(task: Task, examples: Sequence[Any]) -> np.ndarray:
    readings = task.lay_out(examples, labelled=False).readings
    hashes = (hashlib.blake2b(repr(reading).encode(), digest_size=8).digest() for reading in readings)
    return np.frombuffer(b"".join(hashes), np.uint64)
