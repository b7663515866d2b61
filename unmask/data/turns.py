"""Turns: each step reads one track. The next track is drawn by the shares of the stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from unmask import chance
from unmask.batch import Batch
from unmask.data.reader import Notes
from unmask.errors import UserError


class Source(Protocol):
    """Endless batches of one track."""

    @property
    def notes(self) -> Notes: ...

    def batch(self, rows: int) -> Batch: ...

    def state(self) -> dict[str, Any]: ...

    def after_stage(self) -> dict[str, Any]: ...


Open = Callable[[dict[str, Any] | None], Source]  # opens the source of a track at a state


class TurnLoader:
    """Endless batches of tracks that take turns. `state()` returns the current place; pass it as `state` to continue there.

    Every track has its own loader, so its rows do not depend on the other tracks. A track that is not read in a stage keeps
    its place for later stages. `shares`: of the steps, by track; the tracks without a share are not opened."""

    def __init__(
        self, tracks: Mapping[str, Open], shares: dict[str, float], rows: int, seed: int, state: dict[str, Any] | None = None
    ) -> None:  # fmt: skip
        before = state or {}
        self.rows, self.seed = rows, seed
        self.shares = {name: share / sum(shares.values()) for name, share in shares.items() if share > 0}
        self.places: dict[str, Any] = dict(
            before.get("tracks", {})
        )  # of all tracks, also of those that are not read here
        self.loaders = {name: tracks[name](self.places.get(name)) for name in self.shares}
        self.turns: dict[str, int] = dict(before.get("turns", {}))  # steps of each track so far
        self.counts = {name: before.get("counts", {}).get(name, 0) for name in self.shares}  # the same, in this stage
        self.served, self.current = before.get("served", 0), before.get("current", "")

    def batch(self, rows: int) -> Batch:
        """The next rows. All rows of a step come from one track."""
        if not 0 < rows <= self.rows - self.served:
            raise UserError(
                "this step has {left} of its {rows} rows left, got {given}: ask for that many or fewer",
                left=self.rows - self.served,
                rows=self.rows,
                given=rows,
            )
        if not self.served:
            self.current = self._draw()
            self.turns[self.current] = self.turns.get(self.current, 0) + 1
            self.counts[self.current] += 1
        self.served = (self.served + rows) % self.rows
        batch = self.loaders[self.current].batch(rows)
        return batch.replace(tracks=((self.current, len(batch.ids)),))  # an example may have several rows

    def _draw(self) -> str:
        """The track of the next step, drawn from those that have had fewer steps than their share, each with a probability
        proportional to what it lacks. So a track is never more than one step above its share."""
        done = sum(self.counts.values())
        lacking = np.array([max(0.0, share * (done + 1) - self.counts[name]) for name, share in self.shares.items()])
        drawn = chance.generator(self.seed, sum(self.turns.values()), chance.purpose("turns")).random()
        found = int(np.searchsorted(np.cumsum(lacking), drawn * lacking.sum(), side="right"))
        return list(self.shares)[min(found, len(lacking) - 1)]

    def state(self) -> dict[str, Any]:
        now = {name: loader.state() for name, loader in self.loaders.items()}
        step = {"counts": dict(self.counts), "served": self.served, "current": self.current}
        return {"tracks": self.places | now, "turns": dict(self.turns)} | step

    def after_stage(self) -> dict[str, Any]:
        """The state from which the next stage starts."""
        now = {name: loader.after_stage() for name, loader in self.loaders.items()}
        return {"tracks": self.places | now, "turns": dict(self.turns)}

    @property
    def notes(self) -> Notes:
        return {part: notes for loader in self.loaders.values() for part, notes in loader.notes.items()}
