"""The base class of objectives, and the needs of objectives that predict targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from unmask.axes import AskedAt, Need, Objective, Part

if TYPE_CHECKING:
    from torch import Tensor

    from unmask.batch import Batch, Hidden


class Predicts(Part):
    """Base class of objectives. By default an objective is one loss, computed at targets from the last layer."""

    @property
    def target(self) -> str | None:
        return None

    @property
    def layer(self) -> int | None:
        return None

    @property
    def reads_decoder(self) -> bool:
        return False

    @property
    def asked_at(self) -> AskedAt:
        return "targets"

    @property
    def penalty(self) -> bool:
        return False

    def each(self, name: str, layers: int) -> dict[str, Objective]:
        return {name: cast(Objective, self)}

    def flops(self, width: int, embedding: int, vocabulary: float, share: float) -> float:
        """Floating-point operations per token of a row. One answer per example takes too few to count."""
        return 0.0

    def around(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor] | None:
        return None


def read_again(hidden: Hidden, batch: Batch) -> tuple[Tensor, Batch]:
    """The vectors and the rows that an answer about an example or its tokens is read from: those of the decoder, if it read the text too.

    In a decoder's row, a token's place is where it would be written: the decoder has read the tokens before it, the encoder all of them."""
    return (hidden.last, batch) if batch.decoder is None else (hidden.for_prediction, batch.decoder)


def reads_targets(name: str, *, query: bool) -> tuple[Need, ...]:
    """The needs of an objective that predicts these targets. `query`: it can read a second stream."""
    hidden = "covered|from before|second stream" if query else "covered|from before"
    return (
        Need(f"targets:{name}", f"it predicts the targets {name!r}"),
        Need(
            hidden,
            "it must not read the token that it predicts"
            if query
            else "it reads the vectors of the tokens, not a second stream",
        ),
    )
