"""The parts inside a Transformer: what an attention, positions and a decoder must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import nn

from unmask.axes import PartLike

if TYPE_CHECKING:
    from unmask.backbone.embed import Embed
    from unmask.backbone.transformer import Transformer


class AttentionPart(PartLike, Protocol):
    """A Transformer's `attention`: how tokens gather from the tokens that they see.

    The network draws the weights of all `nn.Linear` and `nn.Embedding`; other parameters must come initialised."""

    @property
    def dense(self) -> bool:
        """Whether it computes scores for all pairs of tokens: then it always gets a mask, B 1 T T."""

    @property
    def cached(self) -> bool:
        """Whether it can keep keys and values of the tokens before, for generation."""

    def build(self, width: int, heads: int, dropout: float) -> nn.Module:
        """The attention of one layer. Its linear layer `out` comes last. It is called with

        x: B T D, the vectors that ask; the result has the same shape
        mask: AttentionMask; `mask.prepared` is what the shared module made
        cache: keys and values of this layer, each B H M D, or None; None always, if it is not `cached`
        reads: B T D, the vectors that keys and values come from; None: those of x"""

    def shared(self, width: int, heads: int, dropout: float) -> nn.Module | None:
        """What all layers share, such as a table of relative positions; None for nothing.

        It is called once per batch with (batch, dtype). Every layer finds the result in `mask.prepared`."""

    def flops(self, width: int, length: int) -> float:
        """Floating-point operations of one layer, per token, its linear layers included."""


class Positions(PartLike, Protocol):
    """A Transformer's `positions`: how it knows the place of a token in its example."""

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""

    def embedding(self, length: int, width: int) -> nn.Module | None:
        """Positions (B T) to the vectors that are added to the embeddings (B T D); None: nothing is added."""

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        """The same, added before each layer after the first; an empty list: nothing is added."""


class Decoder(PartLike, Protocol):
    """A Transformer's `decoder`: makes the vectors that objectives read from the vectors of the layers."""

    def build(self, spec: Transformer, blocks: nn.ModuleList, embed: Embed) -> nn.Module:
        """A module that is called with (layers, batch, mask), as they were in the network; it returns B T D.

        The blocks and the embeddings belong to the network. A decoder that uses them keeps them in a tuple, so that
        their parameters are not counted twice."""

    def flops(self, spec: Transformer, length: int) -> float:
        """Floating-point operations per token of one forward pass."""
