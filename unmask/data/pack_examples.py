"""Pack the examples of a task: several of them share a row, so that a batch of short and long texts has little padding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from unmask.batch import Apart, Batch
from unmask.data.loader import to_batch
from unmask.data.pack import Rows, assign

MOST = 32  # examples in one row
SHORTEST, LONGEST = 128, 256  # tokens: rows have room for two of the longest examples, within these limits
MULTIPLE = 8  # of the width of a row
COUNTS = 16  # different numbers of rows, at most, of batches with static shapes


@dataclass(frozen=True)
class Packing:
    """How the texts of several examples share a row."""

    room: int  # the longest row in tokens, unless one text is longer
    apart: bool = False  # whether heads read each text in a row of its own (`Batch.apart`)


def can_pack(rows: Rows) -> bool:
    """Whether nothing is known of a row but its tokens."""
    return not rows.per_row and not rows.sides


def batch_of(rows: Rows, chosen: np.ndarray, visits: np.ndarray | int = 0, *, multiple: int = 8) -> Batch:
    """Some examples as a batch; its rows are only as long as the longest example needs, rounded up to a multiple."""
    chosen = np.asarray(chosen, dtype=np.int64)
    numbers, times = _numbers(rows, chosen)
    longest = int((rows.example[numbers] >= 0).sum(1).max())
    width = min(rows.ids.shape[1], _up(longest, multiple))
    taken = rows.take(numbers, examples=chosen, width=width)
    batch = to_batch(taken, numbers, np.repeat(np.full(len(chosen), visits), times))
    return batch.replace(sides=_sides(taken, multiple)) if rows.sides else batch


def _numbers(rows: Rows, chosen: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers of the rows of some examples, and how many rows an example has: one for each text."""
    times = len(rows.ids) // len(rows)
    return (chosen[:, None] * times + np.arange(times)).ravel(), times


def _sides(rows: Rows, multiple: int) -> tuple[int, int]:
    """The largest number of tokens of the first text in a row, and of the second, rounded up to a multiple."""
    counts = [int(((rows.example >= 0) & (rows.segment == side)).sum(1).max()) for side in (0, 1)]
    first, second = (min(rows.ids.shape[1], _up(count, multiple)) for count in counts)
    return first, second


def padding_of(rows: Rows) -> int:
    """The id on padding; any id if there is none."""
    padding = rows.ids[rows.example < 0]
    return int(padding[0]) if len(padding) else 0


def packed_batch(
    rows: Rows, chosen: np.ndarray, visits: np.ndarray | int, packing: Packing, pad: int, *, static: bool = False
) -> Batch:  # fmt: skip
    """Some examples as a batch with several texts in a row. `pad`: see `padding_of`.

    Rows are at most as long as `packing.room`, unless one text is longer; the result is rounded up to a multiple of 8. `static`: for
    recorded steps. All batches then have the same width, and few different numbers of rows."""
    numbers, times = _numbers(rows, np.asarray(chosen, dtype=np.int64))
    sizes = (rows.example[numbers] >= 0).sum(1)
    longest = rows.ids.shape[1] if static else int(sizes.max())
    width = max(longest, min(packing.room, LONGEST, max(SHORTEST, 2 * longest)))
    row, slot = assign(sizes, width, MOST)
    begin, end = _places(sizes, row, slot)
    width = _up(width if static else end, MULTIPLE)
    count = _up(int(row.max()) + 1, -(-len(numbers) // COUNTS)) if static else int(row.max()) + 1
    places = MOST if static else int(slot.max()) + 1
    which, token = np.nonzero(np.arange(rows.ids.shape[1]) < sizes[:, None])
    where = row[which] * width + begin[which] + token

    def laid(values: np.ndarray, fill: int) -> np.ndarray:
        """Values of the tokens of the chosen texts, n T or with a trailing shape, in their new rows."""
        out = np.full((count * width, *values.shape[2:]), fill, values.dtype)
        out[where] = values[which, token]
        return out.reshape(count, width, *values.shape[2:])

    def per_example(values: np.ndarray) -> np.ndarray:
        """Values of the chosen texts, n or with a trailing shape, at the places of the rows; 0 at unused places."""
        out = np.zeros((count, places, *values.shape[1:]), values.dtype)
        out[row, slot] = values
        return out

    first = slot == 0  # the first text of a row gives it its number
    address, visit = np.zeros(count, np.int64), np.zeros(count, np.int64)
    address[row[first]] = numbers[first]
    visit[row[first]] = np.repeat(np.broadcast_to(visits, len(chosen)), times)[first]
    owner = np.repeat(np.asarray(chosen), times)  # the example of each text
    found = Rows(
        ids=laid(rows.ids[numbers], pad),
        example=laid(np.broadcast_to(slot[:, None], (len(numbers), rows.ids.shape[1])), -1),
        segment=laid(rows.segment[numbers], 0),
        position=laid(rows.position[numbers], 0),
        summary=per_example(rows.summary[numbers, 0] + begin),
        label=per_example(rows.label[owner, 0]),
        counted=per_example(rows.counted[owner, 0]),
        columns={name: replace(c, values=laid(c.values[numbers], c.fill)) for name, c in rows.columns.items()},
        per_example={name: _flat(per_example(values[owner])) for name, values in rows.per_example.items()},
    )
    batch = to_batch(found, address, visit)
    if not packing.apart:
        return batch
    alone = batch_of(rows, chosen, visits, multiple=rows.ids.shape[1] if static else MULTIPLE)
    place = np.resize(where, alone.shape)  # on padding, the vector of any token will do
    place[which, token] = where
    return batch.replace(apart=Apart(alone, torch.from_numpy(place)))


def _places(sizes: np.ndarray, row: np.ndarray, slot: np.ndarray) -> tuple[np.ndarray, int]:
    """Where each example begins in its row, and the end of the longest row."""
    order = np.lexsort((slot, row))
    start = np.cumsum(sizes[order]) - sizes[order]
    head = np.searchsorted(row[order], row[order])  # the first example of the same row
    begin = np.empty_like(sizes)
    begin[order] = start - start[head]
    return begin, int((begin + sizes).max())


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, *values.shape[2:])


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
