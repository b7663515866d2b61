"""WithoutPositions: the base class of networks without positions and segments: LSTMs, and words alone."""

from __future__ import annotations

from unmask.axes import Need, Part
from unmask.errors import require
from unmask.init_weights import InitWeights

ALONE = Need("unpacked rows", "its cells are not reset inside a row")
TWO_SIDED = (Need("both sides", "it reads from both sides"), ALONE)  # the needs of LSTMs that read in both directions


class WithoutPositions(Part):
    """By default it remembers nothing of earlier rows, and all rows of its token table have the full width."""

    @property
    def memory(self) -> int:
        """The number of tokens of earlier rows that it remembers: 0."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on: no, it has no positions."""
        return False

    @property
    def segments(self) -> int:
        """The number of segment kinds that it distinguishes: 0, it ignores segments."""
        return 0

    @property
    def fresh(self) -> InitWeights:
        """How heads are initialised."""
        return InitWeights("normal", 0.02)

    def outputs(self, vocabulary: int) -> float:
        """The number of full-width rows of the token table: all rows."""
        return vocabulary

    def check_sizes(self, *names: str) -> None:
        """Refuse sizes under 1."""
        for name in names:
            value = getattr(self, name)
            require(value >= 1, "backbone.{name} must be 1 or more, got {value}", name=name, value=value)
