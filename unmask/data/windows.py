"""Windows: parts of a text that is too long, which overlap and together hold all of it."""

from __future__ import annotations

import numpy as np

from unmask.errors import require


def windows(a: np.ndarray, b: np.ndarray | None, room: int, stride: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The spans of the first and of the second text of each window, and the number of the example it belongs to.

    `a`, `b`: E 2, the tokens of each example's texts. Of a pair the second text is cut into windows, and the first one is
    in all of them; it may fill half of a row. `stride`: windows advance by this share of their length."""
    require(0 < stride <= 1, "stride must be in (0, 1], got {stride}: write 0.5 for half a window", stride=stride)
    fixed = None if b is None else np.stack((a[:, 0], np.minimum(a[:, 1], a[:, 0] + room // 2)), 1)
    long = a if b is None else b
    used = np.zeros(len(a), np.int64) if fixed is None else fixed[:, 1] - fixed[:, 0]
    found, owner = [], []
    for number, ((begin, end), size) in enumerate(zip(long.tolist(), (room - used).tolist(), strict=True)):
        starts = range(begin, max(begin, end - size), max(1, round(size * stride)))
        # the last window ends with the text: it has as much context as the others
        found += [(start, min(start + size, end)) for start in (*starts, max(begin, end - size))]
        owner += [number] * (len(starts) + 1)
    spans, numbers = np.array(found, dtype=np.int64), np.array(owner, dtype=np.int64)
    return (spans, np.zeros_like(spans), numbers) if fixed is None else (fixed[numbers], spans, numbers)
