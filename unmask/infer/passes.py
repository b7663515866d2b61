"""Passes: texts become batches of like length, as many tokens in each as a pass may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import torch

from unmask.batch import Batch, Hidden
from unmask.data.examples import Laid, batch_of, rows_of_task
from unmask.data.pack import Rows
from unmask.infer.model import Model

PASS = 16_384  # tokens read at once, padding included
CPU_PASS = 2_048  # the same on a CPU: there the vectors of a larger pass leave the cache, and it is slower
T = TypeVar("T")


@dataclass(frozen=True)
class Noted(Generic[T]):
    """A result, and what a user should know about it."""

    value: T
    notes: Counter[str] = field(default_factory=Counter)  # such as "texts longer than 512 tokens, cut", and how many


def tokens_at_once(model: Model) -> int:
    """How many tokens a whole text is read with in one pass."""
    return CPU_PASS if model.device == "cpu" else PASS


def together(
    lengths: Sequence[int] | np.ndarray, *, tokens: int | None = None, rows: int = 1, most: int | None = None
) -> Iterator[np.ndarray]:
    """Which texts to read in one pass, given the length of each: texts of like length, as many as fit.

    `tokens`: in a pass; none: `PASS`. `rows`: of each text. `most`: texts in a pass, whatever their length."""
    order = np.argsort(lengths, kind="stable")
    begin, room = 0, PASS if tokens is None else tokens
    while begin < len(order):
        end = begin + 1
        while (
            end < len(order)
            and (end + 1 - begin) * rows * int(lengths[order[end]]) <= room
            and (most is None or end - begin < most)
        ):
            end += 1
        yield order[begin:end]
        begin = end


def laid_out(model: Model, laid: Laid) -> tuple[Rows, Counter[str]]:
    """The rows of examples as this model reads them; the notes count the texts that were cut."""
    return rows_of_task(laid, model.tokenizer, model.recipe.layout, model.length)


def batches(model: Model, rows: Rows) -> Iterator[tuple[np.ndarray, Batch]]:
    """Which examples, and their batch on the model's device; each example once."""
    times = len(rows.ids) // len(rows)
    lengths = (rows.example >= 0).sum(1).reshape(len(rows), times).max(1)
    for chosen in together(lengths, tokens=tokens_at_once(model), rows=times):
        yield chosen, batch_of(rows, chosen).to(model.device)


def passes(model: Model, rows: Rows) -> Iterator[tuple[np.ndarray, Batch, Hidden]]:
    """Run rows through the network; yields which examples, their batch, their vectors."""
    model.system.eval()
    for chosen, batch in batches(model, rows):
        with torch.no_grad():
            hidden = model.system.look(batch)
        yield chosen, batch, hidden
