"""Pack: put examples into rows of a fixed length, as full as possible; and rows into arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unmask.data.arrange import Runs
from unmask.data.shards import Texts
from unmask.text.columns import BEGINS, CONTINUES, NO_UNIT, OUTSIDE, Column

MOST_EXAMPLES = 8  # in one row; a fixed number of places keeps shapes static
PER_TOKEN = ("ids", "example", "segment", "position")  # fields of Rows, R T each
SENTENCES = "sentence"  # the column that all rows have
PER_EXAMPLE = ("summary", "label", "counted")  # R K each


@dataclass(frozen=True)
class Rows:
    """Rows that are ready to become batches. The names are those of Batch; K is the number of places for examples.

    If a task reads an example several times, the example has several rows, one after the other, and one label."""

    ids: np.ndarray  # R T
    example: np.ndarray  # R T
    segment: np.ndarray  # R T
    position: np.ndarray  # R T
    summary: np.ndarray  # R K, place in the row
    label: np.ndarray  # R K
    counted: np.ndarray  # R K, 0.0 on unused places
    columns: dict[str, Column]  # R T each, or with a trailing shape; runs have become numbers
    per_row: dict[str, np.ndarray] = field(default_factory=dict)  # R each, flags by the names of Batch.per_row
    # by the names of Batch.per_example, one entry per example, with any trailing shape; only rows of a task have them
    per_example: dict[str, np.ndarray] = field(default_factory=dict)
    sides: bool = False  # whether batches know the lengths of the first and the second texts (`Batch.sides`)

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: np.ndarray, *, examples: np.ndarray | None = None, width: int | None = None) -> Rows:
        """Some of the rows, cut to `width` tokens. `examples`: the numbers of their labels, if several rows share one."""
        labels = rows if examples is None else examples
        return Rows(
            **{name: getattr(self, name)[rows, :width] for name in PER_TOKEN},
            summary=self.summary[rows], label=self.label[labels], counted=self.counted[labels],
            columns={name: column[rows, :width] for name, column in self.columns.items()},
            per_row={name: values[rows] for name, values in self.per_row.items()},
            per_example={name: values[labels] for name, values in self.per_example.items()},
            sides=self.sides,
        )  # fmt: skip


def join_rows(parts: list[Rows], columns: dict[str, Column]) -> Rows:
    """Concatenate rows of one length. The result has all `columns`; a part that lacks one gets the fill value."""
    if len(parts) == 1 and columns.keys() <= parts[0].columns.keys():
        return parts[0]
    known = columns | {name: column[:0, 0] for part in parts for name, column in part.columns.items()}
    places = max(part.label.shape[1] for part in parts)
    flags = list(dict.fromkeys(name for part in parts for name in part.per_row))
    none = [np.zeros(len(part), bool) for part in parts]
    answers = parts[0].per_example  # rows of a task are joined only with rows of the same task
    return Rows(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_TOKEN},
        **{name: np.concatenate([_widened(getattr(part, name), places) for part in parts]) for name in PER_EXAMPLE},
        columns={name: _stacked([_column(part, name, column) for part in parts]) for name, column in known.items()},
        per_row={n: np.concatenate([p.per_row.get(n, f) for p, f in zip(parts, none, strict=True)]) for n in flags},
        per_example={name: np.concatenate([part.per_example[name] for part in parts]) for name in answers},
    )  # fmt: skip


def _widened(values: np.ndarray, places: int) -> np.ndarray:
    """Values per example with more places for examples; the new places are unused."""
    return np.pad(values, ((0, 0), (0, places - values.shape[1])))


def _column(rows: Rows, name: str, like: Column) -> Column:
    """A column of some rows; if they lack it, a column of fill values."""
    if name in rows.columns:
        return rows.columns[name]
    dtype = np.int32 if like.kind == "run" else like.values.dtype
    return Column(np.full((*rows.ids.shape, *like.shape), like.fill, dtype), "value", like.fill)


def _stacked(columns: list[Column]) -> Column:
    return replace(columns[0], values=np.concatenate([column.values for column in columns]))


def assign(sizes: np.ndarray, length: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Best fit, longest first: the row of each example, and its place among the examples of that row."""
    rows, slots = np.empty(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    order = np.argsort(-sizes, kind="stable")
    smallest = int(sizes.min()) if len(sizes) else 0
    open_rows: list[list[int]] = [[] for _ in range(length + 1)]  # rows by the room left in them
    rooms = 0  # bit r: some open row has room for r tokens
    held: list[int] = []  # examples in each row
    for index, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        enough = rooms >> size
        if not enough:
            row, room = len(held), length
            held.append(0)
        else:
            room = size + (enough & -enough).bit_length() - 1  # the least room that is enough
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
        rows[index], slots[index] = row, held[row]
        held[row] += 1
        if room - size >= smallest and held[row] < most:
            open_rows[room - size].append(row)
            rooms |= 1 << (room - size)
    return rows, slots


def pack(texts: Texts, runs: Runs, specials: list[int], pad: int, length: int, packed: bool) -> Rows:
    """Lay the examples out in rows of `length` tokens. `specials` are the ids of `arrange.ROLES`."""
    sizes = np.bincount(runs.example, weights=runs.length).astype(np.int64)
    most = MOST_EXAMPLES if packed else 1
    space = sizes if runs.space is None else runs.space
    row, slot = assign(space, length, most) if packed else (np.arange(len(sizes)), np.zeros(len(sizes), np.int64))
    sequence = np.lexsort((slot, row))  # examples in the order they are laid out
    place = np.empty(len(sizes), np.int64)
    place[sequence] = np.arange(len(sizes))
    order = np.argsort(place[runs.example], kind="stable")  # runs in the order they are laid out
    flat = _Flat(texts, runs.start[order], runs.length[order], sizes[sequence], row[sequence], slot[sequence], length)

    run_end = np.empty(len(order), np.int64)
    run_end[order] = flat.where[np.cumsum(flat.run_length) - 1] % length

    def per_example(values: np.ndarray, dtype: type) -> np.ndarray:
        out: np.ndarray = np.zeros((flat.rows, most), dtype)
        out[row, slot] = values
        return out

    return Rows(
        ids=flat.laid(np.concatenate((texts.ids, specials)).astype(np.int32)[flat.token], pad),
        example=flat.laid(flat.per_token(slot[sequence].astype(np.int8)), -1),
        segment=flat.laid(np.repeat(runs.segment[order].astype(np.int8), flat.run_length), 0),
        position=flat.laid(flat.position, 0),
        summary=per_example(run_end[runs.summary], np.int64),
        label=per_example(runs.label, np.int64),
        counted=per_example(np.ones(len(sizes)), np.float32),
        columns={
            name: flat.column(column)
            for name, column in ({SENTENCES: _sentences(texts)} | texts.columns | runs.columns).items()
        },
    )


class _Flat:
    """All tokens of all rows in one flat array, and the place of each token in the rows."""

    def __init__(
        self, texts: Texts, start: np.ndarray, run_length: np.ndarray,
        sizes: np.ndarray, row: np.ndarray, slot: np.ndarray, length: int,
    ) -> None:  # fmt: skip
        self.run_length, self.sizes, self.length = run_length, sizes, length
        self.rows = int(row[-1]) + 1 if len(row) else 0
        begin = _begin(run_length)
        count = int(run_length.sum())
        steps = np.arange(count, dtype=np.int32)
        self.token = np.repeat((start - begin).astype(np.int32), run_length) + steps
        self.first = np.zeros(count, bool)  # whether a token is the first of its run; a run always begins a new unit
        self.first[begin] = True
        example = _begin(sizes)
        self.position = steps - self.per_token(example.astype(np.int32))
        head = np.searchsorted(row, row)  # the first example of the same row
        self.where = steps + self.per_token((row * length - example[head]).astype(np.int32))
        self.row_size = np.bincount(row, weights=sizes).astype(np.int64)

    def per_token(self, values: np.ndarray) -> np.ndarray:
        """A value per example, given to each of its tokens."""
        return np.repeat(values, self.sizes)

    def laid(self, values: np.ndarray, empty: int) -> np.ndarray:
        out = np.full((self.rows * self.length, *values.shape[1:]), empty, values.dtype)
        out[self.where] = values
        return out.reshape(self.rows, self.length, *values.shape[1:])

    def column(self, column: Column) -> Column:
        """A column of the texts as a column of the rows; the marks of a run become numbers."""
        if column.kind == "run":
            return Column(self.laid(self._numbered(self._of_texts(column.values, OUTSIDE)), NO_UNIT), "value", NO_UNIT)
        return replace(column, values=self.laid(self._of_texts(column.values, column.fill), column.fill))

    def _numbered(self, marks: np.ndarray) -> np.ndarray:
        """Number the units of each row from 0, given the mark of each token; NO_UNIT outside."""
        outside = marks == OUTSIDE
        new = ((marks == BEGINS) | self.first) & ~outside
        total = np.cumsum(new, dtype=np.int32)
        begin = _begin(self.row_size)
        before = total[begin] - new[begin]  # units of earlier rows
        total -= np.repeat(before + 1, self.row_size).astype(np.int32)
        total[outside] = NO_UNIT
        return total

    def _of_texts(self, values: np.ndarray, fill: int) -> np.ndarray:
        """The entry of each token of the rows, from those of the texts; the fill value on special tokens."""
        behind = np.full((1, *values.shape[1:]), fill, values.dtype)
        found: np.ndarray = np.concatenate((values, behind))[np.minimum(self.token, len(values))]
        return found


def _sentences(texts: Texts) -> Column:
    """The column of sentences."""
    marks = np.full(len(texts.ids), CONTINUES, np.uint8)
    marks[texts.sentence[:-1]] = BEGINS
    return Column(marks)


def _begin(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths
