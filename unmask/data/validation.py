"""Batches of held-out rows: always the first rows of visit 0, so that every validation reads the same rows with the same
masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from unmask.batch import Batch
from unmask.data.continuing_reader import ContinuingReader
from unmask.data.loader import TRACK_BITS, Loader, TrackReaders, shared_out, to_batch
from unmask.data.reader import Place, Reader, Slot

VALIDATION_STEPS = 4  # rows of each held-out stream, if there is enough text: a memory needs several rows to fill


def held_out(tracks: list[TrackReaders], rows: int, most: int) -> list[Batch]:
    """Batches for validation: at most `rows` rows in all, divided by the shares of the tracks; at most `most` in a batch."""
    if len(tracks) == 1:
        return list(_of_track(tracks[0], rows, most))
    shares = [track.share for track in tracks]
    while rows > 0:
        wanted = shared_out(shares, rows)
        found = [list(_of_track(track, count, most)) for track, count in zip(tracks, wanted, strict=True)]
        counts = [sum(len(batch.ids) for batch in batches) for batches in found]
        if counts == wanted or tracks[0].readers[0].continuing:  # streams may have fewer rows than wanted
            break
        rows = min(rows - 1, *(int(count / share) for count, share in zip(counts, shares, strict=True)))
    else:
        return []
    return [
        batch.replace(row=batch.row + (track.number << TRACK_BITS), tracks=((track.name, len(batch.ids)),))
        for track, batches in zip(tracks, found, strict=True)
        for batch in batches
    ]


def _of_track(track: TrackReaders, rows: int, most: int) -> Iterator[Batch]:
    if rows < 1 or not track.readers:
        return
    if track.readers[0].continuing:
        yield from _in_steps(replace(track, share=1.0, number=0), rows, most)
        return
    counts = shared_out([1.0] * len(track.readers), rows)
    for reader, count in zip(track.readers, counts, strict=True):
        yield from _in_blocks(reader, count, most)


def _in_blocks(reader: Reader, rows: int, most: int) -> Iterator[Batch]:
    """The first rows of a data set, block by block."""
    place, slot = Place(), Slot()
    while place.visit == 0 and rows > 0:
        block = reader.block(place, slot)
        end = min(rows, len(block))
        for low in range(0, end, most):
            taken = block.part(low, min(low + most, end))
            yield to_batch(taken.rows, taken.address, taken.visit)
        rows, place = rows - end, reader.after(place, slot)


def _in_steps(track: TrackReaders, rows: int, most: int) -> Iterator[Batch]:
    """Batches in which each row continues the same row of the batch before."""
    readers = [reader for reader in cast(list[ContinuingReader], track.readers) if reader.most]
    if not readers:
        return
    each = max(1, min(rows // VALIDATION_STEPS, most) // len(readers))
    while each > 1 and min(reader.steps(each) for reader in readers) < VALIDATION_STEPS:
        each -= 1
    streams = each * len(readers)
    steps = min(max(1, rows // streams), *(reader.steps(each) for reader in readers))
    loader = Loader([replace(track, readers=list(readers))], [1.0] * len(readers), streams)
    for _ in range(steps):
        yield loader.batch(streams)
