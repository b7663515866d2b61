"""Group texts of similar length into batches that the network reads in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
import torch

from unmask.axes import gives_of
from unmask.batch import Batch, Hidden
from unmask.data.examples import Laid, rows_of_task
from unmask.data.pack import Rows
from unmask.data.pack_examples import batch_of
from unmask.infer.model import Model

PASS = 16_384  # most tokens in a pass, with padding
# most tokens in a pass on a CPU, at width 768: a larger pass is slower, because it does not fit the CPU cache. A narrower network reads
# more of them, in proportion: its operations are short, and each has a fixed cost
CPU_PASS = 512
# the time of a pass besides that of its tokens, in tokens: reading the weights (of BERT-base on a CPU), starting kernels (on a GPU)
FIXED, CPU_FIXED = 1_024, 16
T = TypeVar("T")


@dataclass(frozen=True)
class Noted(Generic[T]):
    """A result, and notes that the user should know."""

    value: T  # the result
    notes: Counter[str] = field(default_factory=Counter)  # counts such as {"texts longer than 512 tokens, cut": 3}


def tokens_at_once(model: Model) -> int:
    """The most tokens that the model reads in one pass when it reads whole texts."""
    return round(CPU_PASS * 768 / model.recipe.system.backbone.width) if model.device == "cpu" else PASS


def fixed_tokens(model: Model) -> int:
    """The time that every pass takes besides that of its tokens, as a number of tokens."""
    return CPU_FIXED if model.device == "cpu" else FIXED


def together(
    lengths: Sequence[int] | np.ndarray, *, tokens: int | None = None, rows: int = 1, most: int | None = None
) -> Iterator[np.ndarray]:
    """Yields the indices of the texts to read in one pass: texts of similar length, as many as fit.

    `lengths`: of the texts. `tokens`: most tokens in a pass; None: `PASS`. `rows`: rows per text. `most`: most texts in a
    pass, regardless of their length."""
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
    """The examples as rows that this model reads. The notes count the texts that were cut."""
    rows, notes = rows_of_task(laid, model.tokenizer, model.recipe.layout, model.length, linker=model.linker)
    apart = {"decoder rows", "second text"} <= gives_of(
        model.recipe.hide
    )  # an encoder reads one text, a decoder the other
    return replace(rows, sides=apart), notes


def batches(model: Model, rows: Rows) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yields the indices of some examples, and their batch on the model's device. Each example comes once."""
    times = len(rows.ids) // len(rows)
    lengths = (rows.example >= 0).sum(1).reshape(len(rows), times).max(1)
    for chosen in together(lengths, tokens=tokens_at_once(model), rows=times):
        # a GPU is faster with a multiple of 8; on a CPU this would be padding for nothing
        yield chosen, batch_of(rows, chosen, multiple=1 if model.device == "cpu" else 8).to(model.device)


def passes(model: Model, rows: Rows) -> Iterator[tuple[np.ndarray, Batch, Hidden]]:
    """Run rows through the network. Yields the indices of some examples, their batch and their vectors."""
    model.system.eval()
    for chosen, batch in batches(model, rows):
        with torch.no_grad():
            batch = model.system.read(batch)
            hidden = model.system.look(batch)
        yield chosen, batch, hidden
