"""Pack the examples of a task: several of them share a row, so that a batch of short and long texts has little padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unmask.batch import Batch
from unmask.data.loader import to_batch
from unmask.data.pack import Rows, assign

MOST = 32  # examples in one row
SHORTEST, LONGEST = 128, 256  # tokens: rows have room for two of the longest examples, within these limits
MULTIPLE = 8  # of the width of a row
COUNTS = 16  # different numbers of rows, at most, of batches with static shapes


def can_pack(rows: Rows) -> bool:
    """Whether each example has one row, and nothing is known of a row but its tokens."""
    return len(rows.ids) == len(rows) and not rows.per_row and not rows.sides


def padding_of(rows: Rows) -> int:
    """The id on padding; any id if there is none."""
    padding = rows.ids[rows.example < 0]
    return int(padding[0]) if len(padding) else 0


def packed_batch(
    rows: Rows, chosen: np.ndarray, visits: np.ndarray | int, room: int, pad: int, *, static: bool = False
) -> Batch:  # fmt: skip
    """Some examples as a batch with several examples in a row. `pad`: see `padding_of`.

    `room`: the longest row, unless one example is longer; the result is rounded up to a multiple of 8. `static`: for recorded steps. All
    batches then have the same width, and few different numbers of rows."""
    sizes = (rows.example[chosen] >= 0).sum(1)
    longest = rows.ids.shape[1] if static else int(sizes.max())
    width = max(longest, min(room, LONGEST, max(SHORTEST, 2 * longest)))
    row, slot = assign(sizes, width, MOST)
    begin, end = _places(sizes, row, slot)
    width = _up(width if static else end, MULTIPLE)
    count = _up(int(row.max()) + 1, -(-len(chosen) // COUNTS)) if static else int(row.max()) + 1
    places = MOST if static else int(slot.max()) + 1
    which, token = np.nonzero(np.arange(rows.ids.shape[1]) < sizes[:, None])
    where = row[which] * width + begin[which] + token

    def laid(values: np.ndarray, fill: int) -> np.ndarray:
        """Values of the tokens of the chosen examples, n T or with a trailing shape, in their new rows."""
        out = np.full((count * width, *values.shape[2:]), fill, values.dtype)
        out[where] = values[which, token]
        return out.reshape(count, width, *values.shape[2:])

    def per_example(values: np.ndarray) -> np.ndarray:
        """Values of the chosen examples, n or with a trailing shape, at the places of the rows; 0 at unused places."""
        out = np.zeros((count, places, *values.shape[1:]), values.dtype)
        out[row, slot] = values
        return out

    shape = (len(chosen), rows.ids.shape[1])
    first = slot == 0  # the first example of a row gives it its number
    address, visit = np.zeros(count, np.int64), np.zeros(count, np.int64)
    address[row[first]], visit[row[first]] = chosen[first], np.broadcast_to(visits, len(chosen))[first]
    found = Rows(
        ids=laid(rows.ids[chosen], pad),
        example=laid(np.broadcast_to(slot[:, None], shape), -1),
        segment=laid(rows.segment[chosen], 0),
        position=laid(rows.position[chosen], 0),
        summary=per_example(rows.summary[chosen, 0] + begin),
        label=per_example(rows.label[chosen, 0]),
        counted=per_example(rows.counted[chosen, 0]),
        columns={name: replace(c, values=laid(c.values[chosen], c.fill)) for name, c in rows.columns.items()},
        per_example={name: _flat(per_example(values[chosen])) for name, values in rows.per_example.items()},
    )
    return to_batch(found, address, visit)


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
