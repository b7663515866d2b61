"""What a user should know about the examples before training: labels with one example, dev examples that are trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from unmask.axes import Task

LISTED = 5  # labels that are named


def data_notices(task: Task, examples: Sequence[Any], dev: Sequence[Any]) -> list[str]:
    """The notices about these training and dev examples. `task`: with what it learned from them."""
    return [*_rare(task, examples), *_repeated(task, examples, dev)]


def _rare(task: Task, examples: Sequence[Any]) -> list[str]:
    numbers = Counter(task.lay_out(examples).labels) if task.labels else {}
    counts = {name: numbers[number] for number, name in enumerate(task.labels)} if numbers else {}
    rare, lacking = ([name for name, count in counts.items() if count == wanted] for wanted in (1, 0))
    found = []
    if rare:
        several = (
            f"{len(rare):,} labels have only one training example each"
            if len(rare) > 1
            else "a label has only one training example"
        )
        found.append(f"{several}: {_listed(rare)}; a model cannot learn a label from one example")
    if lacking:
        found.append(f"labels without a training example, which the model never learns: {_listed(lacking)}")
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:LISTED])) + (" ..." if len(names) > LISTED else "")


def _repeated(task: Task, examples: Sequence[Any], dev: Sequence[Any]) -> list[str]:
    known = set(task.lay_out(examples, labelled=False).readings)
    count = sum(reading in known for reading in task.lay_out(dev, labelled=False).readings) if dev else 0
    if not count:
        return []
    return [
        f"{count:,} of {len(dev):,} dev examples {'has' if count == 1 else 'have'} the same text as a training example: leave "
        f"{'it' if count == 1 else 'them'} out of the training file, "
        "otherwise the dev scores are too high"
    ]
