"""Local layers: in most layers a token sees only its neighbours, in the others everything (Warner et al. 2024, ModernBERT)."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.axes import Part
from unmask.errors import require


@dataclass(frozen=True)
class Local(Part):
    """Layers with a window around each token, between layers without one (ModernBERT)."""

    window: int = 128  # tokens around a token that it sees, half of them on each side
    every: int = 3  # layers 1, 1 + every, 1 + 2 x every ... have no window

    def __post_init__(self) -> None:
        require(
            self.window >= 2 and self.window % 2 == 0,
            "backbone.local.window must be an even number, 2 or more, got {window}: half of it is on each side",
            window=self.window,
        )
        require(
            self.every >= 2,
            "backbone.local.every must be 2 or more, got {every}: to have no layers with a window, set backbone.local=none",
            every=self.every,
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"windows"})

    def reach_of(self, layer: int) -> int | None:
        """How far a token of this layer, counted from 0, sees to each side; None: as far as `see` shows."""
        return self.window // 2 if layer % self.every else None
