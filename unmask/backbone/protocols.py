"""The protocols of the parts inside a Transformer: attention, positions, local layers and decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor, nn

from unmask.axes import PartLike

if TYPE_CHECKING:
    from unmask.backbone.embed import Embed
    from unmask.backbone.transformer import Transformer
    from unmask.vectors.components import ComponentTable


class AttentionPart(PartLike, Protocol):
    """A Transformer's `attention`: how tokens read from the tokens that they see.

    The network initialises all `nn.Linear` and `nn.Embedding`. The part must initialise all other parameters itself."""

    @property
    def dense(self) -> bool:
        """Whether it computes scores for all pairs of tokens: then it always gets a mask, B 1 T T."""

    @property
    def cached(self) -> bool:
        """Whether it can use a key-value cache, for generation."""

    def build(self, width: int, heads: int, dropout: float) -> nn.Module:
        """The attention of one layer. Its last linear layer must have the name `out`. It is called with

        x: B T D, the vectors that queries come from; the result has the same shape
        mask: AttentionMask; `mask.prepared` is the result of the shared module
        cache: keys and values of this layer, each B H M D, or None; always None if the part is not `cached`
        reads: B T D, the vectors that keys and values come from; None: x"""

    def shared(self, width: int, heads: int, dropout: float) -> nn.Module | None:
        """A module that all layers share, such as a table of relative positions; None: there is none.

        It is called once per batch with (batch, dtype). Every layer gets the result in `mask.prepared`."""

    def flops(self, width: int, length: int) -> float:
        """Floating-point operations of one layer per token, including its linear layers."""


class Positions(PartLike, Protocol):
    """A Transformer's `positions`: how the network knows the position of a token in its example."""

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""

    @property
    def neighbours(self) -> bool:
        """Whether the heads of the first layer start at the neighbours of a token (see `neighbour_heads`)."""

    def embedding(self, length: int, width: int) -> nn.Module | None:
        """A module from positions (B T) to vectors (B T D) that are added to the embeddings; None: nothing is added."""

    def tables(self, layers: int, length: int, width: int) -> list[nn.Module]:
        """The same for each layer after the first; its vectors are added before the layer. []: nothing is added."""

    def rotation(self, position: Tensor, width: int, *, local: bool) -> tuple[Tensor, Tensor] | None:
        """Cosines and sines (B T d/2) of the angles by which queries and keys are rotated; None: they are not rotated.

        `position`: B T. `width`: d, of a head. `local`: for layers in which a token sees only a window."""


class LocalLayers(PartLike, Protocol):
    """A Transformer's `local`: layers in which a token sees only a window around it."""

    def reach_of(self, layer: int) -> int | None:
        """How far a token of this layer, counted from 0, sees to each side; None: as far as `see` shows."""


class Knowledge(PartLike, Protocol):
    """A Transformer's `knowledge`: vectors of entities that its last layers read next to those of tokens."""

    @property
    def entities(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def graph(self) -> str:
        """The fingerprint of the graph; "": no data was read yet."""

    def check(self, spec: Transformer) -> None:
        """Refuse a network that it does not fit into."""

    def fused(self, layers: int) -> int:
        """How many of this number of layers read entities: the last ones."""

    def table(self) -> nn.Module:
        """The vectors of all entities, `vectors`. Called with (batch, dtype), it gives the entities of a batch, or None."""

    def block(self, spec: Transformer, *, first: bool) -> nn.Module:
        """A layer that reads entities: a `Block` whose `fuse(x, mask, entities)` gives x and their `vectors` after the layer."""

    def flops(self, spec: Transformer, length: int) -> float:
        """Floating-point operations per token that it adds to the network."""


class ComponentsPart(PartLike, Protocol):
    """A Transformer's `components`: parts of characters whose vectors are added to those of tokens."""

    @property
    def count(self) -> int:
        """The number of different components; 0: no table was read yet."""

    @property
    def most(self) -> int:
        """The most components of one token."""

    def read(self) -> ComponentTable:
        """The components of each character, from a file."""

    def table(self, vocabulary: int, width: int) -> nn.Embedding:
        """Token embeddings that add the vectors of components. `put` and `met` (see `components.py`) fill the table."""


class Decoder(PartLike, Protocol):
    """A Transformer's `decoder`: it computes the vectors that objectives read from the outputs of the layers."""

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""

    def build(self, spec: Transformer, blocks: nn.ModuleList, embed: Embed) -> nn.Module:
        """A module that is called with (layers, batch, mask), the values of the network, and returns B T D.

        The blocks and the embeddings belong to the network. A decoder that uses them keeps them in a tuple, so that
        their parameters are not counted twice."""

    def flops(self, spec: Transformer, length: int) -> float:
        """Floating-point operations per token of one forward pass."""
