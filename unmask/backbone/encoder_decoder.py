"""An encoder and a decoder: the encoder reads the source, and the decoder writes a text from left to right (Vaswani et al. 2017).

`Hidden.layers` are the vectors of the encoder, `Hidden.decoded` those of the decoder. A batch without decoder rows is read by
the encoder alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unmask.axes import Need, Part
from unmask.backbone.attention import attention_mask
from unmask.backbone.auto_dropout import Dropout
from unmask.backbone.block import Activation, feedforward_flops
from unmask.backbone.cross_attention import cross_flops, cross_mask, source_flops
from unmask.backbone.decoder_block import DecoderBlock
from unmask.backbone.decoder_cache import DecoderCache
from unmask.backbone.embed import Embed, Norm
from unmask.backbone.key_value_cache import Cache
from unmask.backbone.neighbour_heads import start_at_neighbours
from unmask.backbone.positions import Learned
from unmask.backbone.protocols import ComponentsPart, Positions
from unmask.backbone.transformer import Transformer, TransformerModule, compute_dtype, norms_embeddings
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.init_weights import InitWeights, Law
from unmask.see import LeftToRight, Pattern


@dataclass(frozen=True)
class EncoderDecoder(Part):
    """A Transformer that reads and a Transformer that writes (BART, MASS). Both share the token embeddings.

    The vectors of positions are not shared. In each layer, the decoder reads its own tokens from left to right, then the
    whole source of its example."""

    layers: int = 6  # the number of layers of the encoder
    decoder_layers: int = 6  # the number of layers of the decoder
    width: int = 768  # of every vector between layers
    heads: int = 12  # of attention
    feedforward: int = 3072  # width inside the feed-forward layer
    length: int = 1024  # longest example, in the source and in the decoder
    norm: Literal["post", "pre"] = "post"  # after the residual sum, or before each sublayer
    embedding_norm: bool | None = None  # a norm on the embeddings too; none: only with norm=post (BART)
    scaled_embedding: bool = False  # multiply token embeddings by the square root of the width (Vaswani et al. 2017)
    positions: Positions = Learned()  # how the network knows the position of a token
    components: ComponentsPart | None = None  # of the characters of a token, added to its vector; none: there are none
    activation: Activation = "gelu"  # of the feed-forward layer
    dropout: Dropout = 0.1  # on the embeddings and after every sublayer; auto: by how often the text is read
    attention_dropout: float = 0.0  # on attention weights; above 0, training uses the slower dense kernel
    activation_dropout: float = 0.0  # inside the feed-forward layer, after its activation
    epsilon: float = 1e-5  # of the norms
    initial: Law = "normal"  # initial weights: a normal distribution, cut at two standard deviations or not cut
    deviation: float = 0.02  # of the initial weights

    def __post_init__(self) -> None:
        require(
            self.decoder_layers >= 1,
            "backbone.decoder_layers must be 1 or more, got {decoder_layers}",
            decoder_layers=self.decoder_layers,
        )
        require(
            not self.positions.needs,
            "backbone.positions={positions} rotates queries and keys, and those of a decoder and of its source have different "
            "positions: set positions=Learned or positions=Sinusoidal",
            positions=type(self.positions).__name__,
        )
        _ = self.encoder  # it checks the values that both have

    @property
    def encoder(self) -> Transformer:
        """The encoder as a backbone of its own."""
        return Transformer(
            layers=self.layers, width=self.width, heads=self.heads, feedforward=self.feedforward, length=self.length,
            norm=self.norm, embedding_norm=self.embedding_norm, positions=self.positions, activation=self.activation,
            dropout=self.dropout, attention_dropout=self.attention_dropout, activation_dropout=self.activation_dropout,
            epsilon=self.epsilon, initial=self.initial, deviation=self.deviation,
        )  # fmt: skip

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("decoder rows", "its decoder must have a text to write"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "decoder", "equal layers"})

    @property
    def embedding(self) -> None:
        """The width of the embeddings: that of the layers."""

    @property
    def segments(self) -> int:
        """The number of segment embeddings: 0, there are none."""
        return 0

    @property
    def memory(self) -> int:
        """The number of tokens of earlier rows that stay visible: 0, there is no memory."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""
        return self.positions.bounded

    @property
    def fresh(self) -> InitWeights:
        """How layers and heads are initialised."""
        return self.encoder.fresh

    @property
    def drops(self) -> float:
        """The dropout that the network is built with."""
        return self.encoder.drops

    def build(self, vocabulary: int, pattern: Pattern, embed: Embed | None = None) -> EncoderDecoderModule:
        """The network with random initial weights. `embed`: the embeddings of another network, for the encoder."""
        return EncoderDecoderModule(self, vocabulary, pattern, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass over rows of this length.

        `asked`: predictions per token of the source. The decoder has one token for each."""
        encoder = self.encoder
        written = encoder.attention.flops(self.width, round(asked * length)) + cross_flops(self.width, length)
        each = asked * (written + feedforward_flops(encoder)) + source_flops(self.width)
        return encoder.flops(length, pattern) + self.decoder_layers * each

    def outputs(self, vocabulary: int) -> float:
        """The number of full-width rows of the token table: all rows."""
        return vocabulary


class EncoderDecoderModule(nn.Module):
    """The network itself."""

    endless = False  # a cache has space for a fixed number of tokens
    reach = None  # there is no largest distance: all positions are distinguished
    can_cache = True  # it can read two texts part by part

    def __init__(self, spec: EncoderDecoder, vocabulary: int, pattern: Pattern, embed: Embed | None) -> None:
        super().__init__()
        self.spec = spec
        self.encoder = TransformerModule(spec.encoder, vocabulary, pattern, embed or _embed(spec, vocabulary))
        self.decoder_embed = _embed(replace(spec, components=None), 1)
        self.decoder_embed.token = self.encoder.embed.token  # one table for both
        self.decoder_blocks = nn.ModuleList(DecoderBlock(spec.encoder) for _ in range(spec.decoder_layers))
        self.decoder_norm = Norm(spec.width, eps=spec.epsilon) if spec.norm == "pre" else nn.Identity()
        for module in self.decoder_blocks.modules():
            if isinstance(module, nn.Linear):
                spec.fresh.layer(module)
        if isinstance(self.decoder_embed.position, nn.Embedding):
            spec.fresh.draw(self.decoder_embed.position.weight)
        if spec.positions.neighbours:
            first: Any = self.decoder_blocks[0]
            start_at_neighbours(spec.encoder, self.decoder_embed, first.attention, "left")

    @property
    def embed(self) -> Embed:
        """The embeddings of the encoder, with the table of tokens."""
        return self.encoder.embed

    @property
    def compiled(self) -> bool:
        """Whether the parts are compiled."""
        return self.encoder.compiled

    @compiled.setter
    def compiled(self, on: bool) -> None:
        self.encoder.compiled = on

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one. Equal layers are compiled only once."""
        return [*self.encoder.parts, self.decoder_embed, *self.decoder_blocks]

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, those of the encoder first. All other modules count as embeddings."""
        found = [[block] for block in self.decoder_blocks]
        found[-1] += [self.decoder_norm]
        return [*self.encoder.layer_modules, *found]

    def first_state(self, rows: int) -> None:
        """The memory before the first batch of training: None, because a token sees only its own row."""

    def read(self, source: Batch, length: int) -> DecoderCache:
        """Read a source once. The decoder then continues from this cache, up to this number of tokens. Each row of the source
        is one example."""
        found = self.encoder(source)[0].last
        pairs = [block.cross.keys_values(found) for block in list[Any](self.decoder_blocks)]
        keys, values = (torch.stack([pair[side] for pair in pairs], 1) for side in (0, 1))
        spec = self.spec
        own = Cache.empty(spec.decoder_layers, len(found), spec.heads, length, spec.width // spec.heads, keys)
        return DecoderCache(own, keys, values, source.real)

    def forward(self, batch: Batch, state: DecoderCache | None = None) -> tuple[Hidden, DecoderCache | None]:
        """The vectors of the batch and of its decoder rows. With a cache, the batch holds the next tokens of the decoder."""
        if state is not None:
            return self._continued(batch, state)
        hidden, _ = self.encoder(batch)
        if batch.decoder is None:
            return hidden, None
        return hidden.replace(decoded=self._decoded(batch, batch.decoder, hidden.last)), None

    def _decoded(self, batch: Batch, decoder: Batch, source: Tensor) -> Tensor:
        """B T D, the vectors of the decoder rows."""
        dense = self.training and self.spec.attention_dropout > 0
        mask = attention_mask(decoder, "left", source.dtype, compiled=self.compiled, dense=dense)
        cross = cross_mask(decoder, batch, source.dtype, dense=dense)
        x = self.decoder_embed(decoder).to(source.dtype)
        for block in self.decoder_blocks:
            x = block(x, mask, cross, source)
        normed: Tensor = self.decoder_norm(x)
        return normed

    def _continued(self, batch: Batch, state: DecoderCache) -> tuple[Hidden, DecoderCache]:
        """The vectors of the next tokens of the decoder, and the cache after them."""
        batch, mask, own = state.own.take(LeftToRight().apply(batch))
        x = self.decoder_embed(batch).to(compute_dtype(self.embed.token.weight))
        for number, block in enumerate(self.decoder_blocks):
            x = block(x, mask, state.mask, state.source(number), own.layer(number))
        x = self.decoder_norm(x)
        return Hidden((x,), decoded=x), state.replace(own=own)


def _embed(spec: EncoderDecoder, vocabulary: int) -> Embed:
    encoder = spec.encoder
    return Embed(
        vocabulary, spec.width, length=spec.length, positions=spec.positions, segments=0, norm=norms_embeddings(encoder),
        dropout=encoder.drops, epsilon=spec.epsilon, scale=math.sqrt(spec.width) if spec.scaled_embedding else 1.0,
        components=spec.components,
    )  # fmt: skip
