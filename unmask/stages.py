"""Stages for tracks that take turns: continual, one after another, or all together (the schedules of ERNIE 2.0)."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.recipe import Stage


def continual(tracks: Sequence[str], *, rows: int, length: int) -> tuple[Stage, ...]:
    """A stage for each track, which begins there, together with all tracks before it.

    All tracks have the same number of steps. A track gets an equal, small part of it in each stage after its first one, and
    the rest in its first stage. As in the paper, the first track has two such parts in the first stage: with four tracks
    2, then 1, 1, 1; the second 3, then 1, 1; the third 4, then 1; the last one 5."""
    count = len(tracks)
    return tuple(
        Stage(
            share=2 * number / (count * (count + 1)),
            rows=rows,
            length=length,
            turns=dict.fromkeys(tracks[: number - 1], 1.0) | {tracks[number - 1]: number + 1.0},
        )
        for number in range(1, count + 1)
    )


def sequential(tracks: Sequence[str], *, rows: int, length: int) -> tuple[Stage, ...]:
    """A stage for each track alone, all of the same length."""
    return tuple(Stage(share=1 / len(tracks), rows=rows, length=length, turns={track: 1.0}) for track in tracks)


def joint(tracks: Sequence[str], *, rows: int, length: int) -> tuple[Stage, ...]:
    """One stage with all tracks."""
    return (Stage(rows=rows, length=length, turns=dict.fromkeys(tracks, 1.0)),)
