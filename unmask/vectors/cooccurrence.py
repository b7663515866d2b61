"""How often words come near each other: counted in bounded memory, by worker processes, and kept on disk in square tiles.

Two words at distance d, in one line and in a window, add 1/d to the cell of the pair (GloVe, section 4.2). The table is
symmetric, so only one of the two cells of a pair is stored. Each chunk of text gives one sorted file ("run"); at the end
the runs are merged.

The words are dealt to blocks like cards: word i, counted from the most frequent, is in block i % blocks. So every tile (the cells of
two blocks) has frequent and rare words, and a tile is a good sample of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unmask.data.workers import in_workers, used_workers
from unmask.errors import require

TILE = 512  # words in a block
FREQUENT = 1024  # pairs of these words are most of the pairs: they are counted in a matrix, which needs no sorting
CHUNK = 1 << 22  # bytes of words that a worker counts at a time
MERGED = 1 << 22  # cells that are merged at a time
WIDEST = 64  # most words in a window on each side
_LINE_END = -2


@dataclass(frozen=True)
class Layout:
    """Where the cell of a pair of words is: in which tile, and where in the tile."""

    words: int
    tile: int = TILE

    @property
    def blocks(self) -> int:
        return -(-self.words // self.tile)

    @property
    def places(self) -> np.ndarray:
        """The place of each word: its block times the size of a block, plus its place in the block."""
        number = np.arange(self.words, dtype=np.int64)
        return number % self.blocks * self.tile + number // self.blocks

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """By place, what a row and a column add to the number of a cell: cells are numbered tile by tile, then row by row."""
        place = np.arange(self.blocks * self.tile, dtype=np.int64)
        block, inner = place // self.tile, place % self.tile
        return (block * self.blocks * self.tile + inner) * self.tile, block * self.tile**2 + inner


@dataclass(frozen=True)
class Table:
    """The cells on disk. Of a tile on the diagonal only the upper half is stored."""

    layout: Layout
    starts: np.ndarray  # blocks * blocks + 1, the first cell of each tile
    index: np.ndarray  # the place of each cell in its tile
    value: np.ndarray  # sums of 1/distance

    def cells(self, row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The places and values of the cells of a tile; row <= column."""
        tile = row * self.layout.blocks + column
        chosen = slice(int(self.starts[tile]), int(self.starts[tile + 1]))
        return self.index[chosen], self.value[chosen]


@dataclass(frozen=True)
class Counting:
    """What a worker needs to count a part of the file of words."""

    file: Path
    folder: Path  # for the runs
    numbers: dict[str, int]  # of each word that is counted, the most frequent first
    layout: Layout
    window: int

    @property
    def frequent(self) -> int:
        return min(FREQUENT, self.layout.words)


def count_pairs(
    file: Path, folder: Path, words: list[str], window: int, *, workers: int | None = None, tile: int = TILE
) -> Iterator[dict[str, Any] | Table]:
    """Count the pairs of a file of words; yields progress records, and at last the table. `folder`: for files of the table."""
    require(
        1 <= window <= WIDEST, "--window must be from 1 to {widest} words, got {window}", widest=WIDEST, window=window
    )
    numbers = {word: number for number, word in enumerate(words)}
    counting = Counting(file, folder, numbers, Layout(len(words), tile), window)
    size, done = file.stat().st_size, 0
    frequent = np.zeros(counting.frequent**2)
    parts = list(_parts(file, size))
    for begin, end, matrix in in_workers(_count, parts, used_workers(workers), start=_start, given=(counting,)):
        frequent += matrix
        done += end - begin
        yield {"done": done, "done_total": size}
    _save_frequent(counting, frequent)
    yield merge(counting.layout, sorted(folder.glob("*.keys.npy")), folder)


def _parts(file: Path, size: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of whole lines, about CHUNK long."""
    begin = 0
    with file.open("rb") as stream:
        while begin < size:
            stream.seek(min(begin + CHUNK, size))
            stream.readline()
            yield begin, stream.tell()
            begin = stream.tell()


_worker: dict[str, Counting] = {}  # in a worker process


def _start(counting: Counting) -> None:
    _worker["counting"] = counting


def _count(part: tuple[int, int]) -> tuple[int, int, np.ndarray]:
    """Count the pairs of a part: rare ones go to a run, those of frequent words are returned."""
    counting, (begin, end) = _worker["counting"], part
    with counting.file.open("rb") as stream:
        stream.seek(begin)
        text = stream.read(end - begin).decode("utf-8")
    matrix, keys, sums = pairs_of(counting, text)
    _save_run(counting.folder, f"{begin:015d}", keys, sums)
    return begin, end, matrix


def pairs_of(counting: Counting, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix of frequent words (row: the word that comes first), and the sorted cells of all other pairs with their sums.
    Words without a number are skipped, as if they were not in the text."""
    number = _numbered(counting.numbers, text)
    line = np.cumsum(number == _LINE_END)[number >= 0]
    number = number[number >= 0]
    place = counting.layout.places[number]
    rows, columns = counting.layout.sides()
    most, bits = counting.frequent, (counting.window - 1).bit_length()
    matrix, rare = np.zeros(most * most), []
    often = number < most
    for distance in range(1, counting.window + 1):
        together = line[distance:] == line[:-distance]
        both = together & often[distance:] & often[:-distance]
        cells = number[:-distance][both] * most + number[distance:][both]
        matrix += np.bincount(cells, minlength=most * most) / distance
        other = together ^ both
        one, two = place[:-distance][other], place[distance:][other]
        keys = rows[np.minimum(one, two)] + columns[np.maximum(one, two)]
        rare.append((keys << bits) | (distance - 1))
    packed = np.concatenate(rare)
    packed.sort()  # one sort of plain numbers is much faster than a sort of keys that carries the distances along
    weights = 1 / np.arange(1, counting.window + 1)
    return matrix, *_summed(packed >> bits, weights[packed & ((1 << bits) - 1)])


def _numbered(numbers: dict[str, int], text: str) -> np.ndarray:
    """The number of each word; -1: it has none; -2: the end of a line."""
    words = text.replace("\n", " \n ").split(" ")
    known = {"\n": _LINE_END, **numbers}
    return np.array([known.get(word, -1) for word in words], dtype=np.int64)


def _summed(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the values of each key; the keys are sorted."""
    if not len(keys):
        return keys, values.astype(np.float32)
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(values, first).astype(np.float32)


def _save_run(folder: Path, name: str, keys: np.ndarray, sums: np.ndarray) -> None:
    np.save(folder / f"{name}.keys.npy", keys)
    np.save(folder / f"{name}.sums.npy", sums)


def _save_frequent(counting: Counting, matrix: np.ndarray) -> None:
    """The cells of the frequent words as one more run; the two cells of a pair become one."""
    first, second = np.divmod(np.flatnonzero(matrix), counting.frequent)
    one, two = (counting.layout.places[number] for number in (first, second))
    rows, columns = counting.layout.sides()
    keys = rows[np.minimum(one, two)] + columns[np.maximum(one, two)]
    order = np.argsort(keys, kind="stable")
    _save_run(counting.folder, "frequent", *_summed(keys[order], matrix[matrix > 0][order]))


def merge(layout: Layout, runs: list[Path], folder: Path) -> Table:
    """Merge sorted runs into a table, some tiles at a time; the runs are removed."""
    tiles, area = layout.blocks**2, layout.tile**2
    bounds = np.arange(tiles + 1, dtype=np.int64) * area
    opened = [(np.load(run, mmap_mode="r"), np.load(_sums(run), mmap_mode="r")) for run in runs]
    cuts = [np.searchsorted(keys, bounds) for keys, _ in opened]
    total = np.sum(cuts, axis=0)
    starts = np.zeros(tiles + 1, dtype=np.int64)
    begin = 0
    with (folder / "index").open("wb") as index, (folder / "value").open("wb") as value:
        while begin < tiles:
            # at least one tile, and as many as fit
            end = max(begin + 1, int(np.searchsorted(total, total[begin] + MERGED, side="right")) - 1)
            keys, sums = _merged(opened, cuts, begin, min(end, tiles))
            (keys % area).astype(np.uint32).tofile(index)
            sums.tofile(value)
            starts[begin + 1 : end + 1] = starts[begin] + np.searchsorted(keys, bounds[begin + 1 : end + 1])
            begin = end
    for run in runs:
        run.unlink()
        _sums(run).unlink()
    if not starts[-1]:
        return Table(layout, starts, np.zeros(0, np.uint32), np.zeros(0, np.float32))
    return Table(
        layout, starts, np.memmap(folder / "index", np.uint32, "r"), np.memmap(folder / "value", np.float32, "r")
    )


def _sums(run: Path) -> Path:
    return run.with_name(run.name.replace(".keys.", ".sums."))


def _merged(
    opened: list[tuple[np.ndarray, np.ndarray]], cuts: list[np.ndarray], begin: int, end: int
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of the tiles from `begin` to `end` of all runs, each once."""
    chosen = [slice(int(cut[begin]), int(cut[end])) for cut in cuts]
    keys = np.concatenate([run[part] for (run, _), part in zip(opened, chosen, strict=True)])
    sums = np.concatenate([run[part] for (_, run), part in zip(opened, chosen, strict=True)])
    order = np.argsort(keys, kind="stable")
    return _summed(keys[order], sums[order].astype(np.float64))
