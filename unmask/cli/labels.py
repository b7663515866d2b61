"""How the scores of labels are shown: a few numbers, the confusion matrix, or for many labels a table of each."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from unmask import screen
from unmask.errors import require

MOST = 10  # labels whose confusion matrix is shown


def show(scores: dict[str, Any]) -> None:
    """The confusion matrix; of more than ten labels the scores of each, and the worst confusions."""
    labels = scores["labels"]
    if len(labels) <= MOST:
        rows = [[name, *row] for name, row in zip(labels, scores["confusion"], strict=True)]
        screen.table("truth in rows, prediction in columns", ["", *labels], rows)
        return
    numbers = ("precision", "recall", "f1")
    rows = [
        [name, *(f"{of[number]:.3f}" for number in numbers), f"{of['support']:,}"]
        for name, of in scores["per_class"].items()
    ]
    screen.table("by label", ["label", "precision", "recall", "F1", "support"], rows)
    worst = [[one["truth"], one["predicted"], f"{one['count']:,}"] for one in scores["worst_confusions"]]
    if worst:
        screen.table("worst confusions", ["truth", "predicted", "texts"], worst)


def show_types(scores: dict[str, Any]) -> None:
    """The scores of each type of span."""
    rows = [
        [name, *(f"{of[number]:.3f}" for number in ("precision", "recall", "f1")), f"{of['support']:,}"]
        for name, of in scores["per_type"].items()
    ]
    screen.table("by type", ["type", "precision", "recall", "F1", "support"], rows)


def one_label(scores: dict[str, Any]) -> str | None:
    """What to say if a model gives all texts the same label, and they do not have it."""
    columns = [sum(column) for column in zip(*scores["confusion"], strict=True)]
    given = [name for name, count in zip(scores["labels"], columns, strict=True) if count]
    alike = len(given) == 1 and scores["accuracy"] < 1
    return f"one label is predicted for all {scores['examples']:,} texts: {given[0]!r}" if alike else None


def check_matrix(path: Path) -> None:
    """Refuse a name that no matrix can be written to, before any work is done."""
    require(path.suffix == ".csv", "the confusion matrix is written as .csv, got {path}", path=path)
    require(path.parent.is_dir(), "the folder {parent} does not exist: make it, or name another", parent=path.parent)


def write_matrix(scores: dict[str, Any], path: Path) -> None:
    """The whole confusion matrix, truth in rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["truth", *scores["labels"]])
        writer.writerows([name, *row] for name, row in zip(scores["labels"], scores["confusion"], strict=True))
