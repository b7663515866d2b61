"""The Transformer: a stack of layers; its attention, its positions and an optional decoder are parts."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from unmask.axes import Part
from unmask.backbone.attention import AttentionMask, Full, attention_mask
from unmask.backbone.auto_dropout import Dropout, dropout_for
from unmask.backbone.block import Activation, Block, drop_bias, feedforward_flops
from unmask.backbone.embed import Embed, Norm
from unmask.backbone.key_value_cache import Cache, require_cached
from unmask.backbone.layer_masks import layer_masks
from unmask.backbone.neighbour_heads import start_at_neighbours
from unmask.backbone.positions import Learned
from unmask.backbone.protocols import AttentionPart, ComponentsPart, Decoder, Knowledge, LocalLayers, Positions
from unmask.backbone.rotary import ROTATION
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.init_weights import InitWeights, Law, glorot
from unmask.see import Pattern

Sharing = Literal["none", "attention", "feedforward", "all"]


@dataclass(frozen=True)
class Transformer(Part):
    """A stack of Transformer layers (BERT, GPT); with shared layers and narrow embeddings, ALBERT."""

    layers: int = 12  # the number of layers
    width: int = 768  # of every vector between layers
    heads: int = 12  # of attention
    feedforward: int = 3072  # width inside the feed-forward layer
    embedding: int | None = None  # width of the embeddings, which are projected to `width`; none: `width`
    sharing: Sharing = "none"  # which weights all layers share
    length: int = 512  # longest example
    norm: Literal["post", "pre"] = "post"  # after the residual sum (BERT) or before each sublayer (GPT-2)
    embedding_norm: bool | None = None  # a norm on the embeddings too; none: only with norm=post (BERT)
    first_norm: bool = True  # with norm=pre, a norm before the first attention too; ModernBERT has none there
    biases: bool = True  # in linear layers and norms
    attention: AttentionPart = Full()  # how tokens read from the tokens that they see
    positions: Positions = Learned()  # how the network knows the position of a token
    local: LocalLayers | None = (
        None  # layers in which a token sees only a window around it; none: there are no such layers
    )
    decoder: Decoder | None = None  # computes the vectors that objectives read; none: they read the last layer
    knowledge: Knowledge | None = None  # entities that the last layers read; none: there are none
    components: ComponentsPart | None = None  # of the characters of a token, added to its vector; none: there are none
    segments: int = 0  # the number of segment embeddings; 0: no segments
    tasks: int = 0  # the number of task embeddings: each track has its own (ERNIE 2.0); 0: no tasks
    activation: Activation = "gelu"  # of the feed-forward layer
    gated: bool = False  # the activation is multiplied by a third linear layer: with gelu, GeGLU
    dropout: Dropout = 0.1  # on the embeddings and after every sublayer; auto: by how often the text is read
    attention_dropout: float = 0.0  # on attention weights; above 0, training uses the slower dense kernel
    activation_dropout: float = 0.0  # inside the feed-forward layer, after its activation
    epsilon: float = 1e-12  # of the norms
    initial: Law = "truncated"  # initial weights: a normal distribution, cut at two standard deviations or not cut
    deviation: float = 0.02  # of the initial weights
    # initial weights of the projection of narrow embeddings: as in the layers, or Glorot's (ELECTRA)
    initial_projection: Literal["layers", "glorot"] = "layers"
    scaled_init: bool = False  # divide initial output weights by the square root of the number of sublayers (GPT-2)

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "feedforward", "length"):
            value = getattr(self, name)
            require(value >= 1, "backbone.{name} must be 1 or more, got {value}", name=name, value=value)
        require(
            self.width % self.heads == 0,
            "backbone.width must be a multiple of backbone.heads, got {width} and {heads}",
            width=self.width,
            heads=self.heads,
        )
        require(
            self.embedding is None or self.embedding >= 1,
            "backbone.embedding must be none or 1 or more, got {embedding}",
            embedding=self.embedding,
        )
        require(
            self.segments == 0 or self.segments >= 2,
            "backbone.segments must be 0 for none, or 2 or more, got {segments}",
            segments=self.segments,
        )
        require(self.tasks >= 0, "backbone.tasks must be 0 or more, got {tasks}", tasks=self.tasks)
        require(
            self.first_norm or self.norm == "pre",
            "backbone.first_norm=false leaves out the norm before the first attention, got norm={norm}: set norm=pre, or "
            "first_norm=true",
            norm=self.norm,
        )
        rotates = any(need.fact == ROTATION for need in self.positions.needs)
        require(
            not rotates or self.width // self.heads % 2 == 0,
            "backbone.positions={positions} rotates pairs of numbers, so the width of a head must be even, got {head}: set "
            "another backbone.width or backbone.heads",
            positions=type(self.positions).__name__,
            head=self.width // self.heads,
        )
        require(
            not self.positions.neighbours or self.attention == Full(),
            "backbone.positions.start=neighbours sets initial weights of attention=Full, got attention={attention}: set "
            "positions.start=random",
            attention=type(self.attention).__name__,
        )
        embedding, head = self.embedding or self.width, self.width // self.heads
        require(
            not self.positions.neighbours or min(embedding, head) >= 2,
            "backbone.positions.start=neighbours needs embeddings and heads of 2 numbers or more, got {embedding} and {head}: set "
            "positions.start=random",
            embedding=embedding,
            head=head,
        )
        if self.knowledge is not None:
            self.knowledge.check(self)
        check_dropout(self, "dropout", "attention_dropout", "activation_dropout")
        require(self.deviation > 0, "backbone.deviation must be over 0, got {deviation}", deviation=self.deviation)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "any width", "equal layers"} | ({"task embeddings"} if self.tasks else set()))

    @property
    def memory(self) -> int:
        """The number of tokens of earlier rows that stay visible: 0, there is no memory."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""
        return self.positions.bounded or (self.decoder is not None and self.decoder.bounded)

    @property
    def fresh(self) -> InitWeights:
        """How layers and heads are initialised."""
        return InitWeights(self.initial, self.deviation)

    @property
    def drops(self) -> float:
        """The dropout that the network is built with."""
        return dropout_for(self.dropout)

    def build(self, vocabulary: int, pattern: Pattern, embed: Embed | None = None) -> TransformerModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return TransformerModule(self, vocabulary, pattern, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass over rows of this length.

        `asked` has no effect: there is no second stream."""
        seen = Counter(self.seen(layer, length) for layer in range(self.layers))
        layers = sum(n * (self.attention.flops(self.width, keys) + feedforward_flops(self)) for keys, n in seen.items())
        narrow = self.embedding or self.width
        project = 2 * narrow * self.width if narrow != self.width else 0
        decoder = 0.0 if self.decoder is None else self.decoder.flops(self, length)
        return layers + project + decoder + (0.0 if self.knowledge is None else self.knowledge.flops(self, length))

    def outputs(self, vocabulary: int) -> float:
        """The number of full-width rows of the token table: all rows."""
        return vocabulary

    def window(self, layer: int) -> int | None:
        """How far a token of this layer, counted from 0, sees to each side; None: as far as `see` shows."""
        return None if self.local is None else self.local.reach_of(layer)

    def seen(self, layer: int, length: int) -> int:
        """The number of tokens that a token of this layer sees in a row of this length, at most."""
        window = self.window(layer)
        return length if window is None else min(length, 2 * window + 1)


def norms_embeddings(spec: Transformer) -> bool:
    """Whether there is a norm on the embeddings."""
    return spec.norm == "post" if spec.embedding_norm is None else spec.embedding_norm


def check_dropout(spec: Any, *names: str, automatic: tuple[str, ...] = ("dropout",)) -> None:
    """Refuse a dropout rate outside [0, 1). `automatic`: the names of those that may be `auto`."""
    for name in names:
        value = getattr(spec, name)
        require(
            (name in automatic and value == "auto") or 0 <= value < 1,
            "backbone.{name} must be in [0, 1), got {value}",
            name=name,
            value=value,
        )


class TransformerModule(nn.Module):
    """The network itself."""

    endless = False  # a cache has space for a fixed number of tokens
    reach = None  # there is no largest distance: all positions are distinguished

    def __init__(self, spec: Transformer, vocabulary: int, pattern: Pattern, embed: Embed | None) -> None:
        super().__init__()
        self.spec, self.pattern = spec, pattern
        width = spec.embedding or spec.width
        self.embed = embed or Embed(
            vocabulary, width, length=spec.length, positions=spec.positions, segments=spec.segments, tasks=spec.tasks,
            norm=norms_embeddings(spec), dropout=spec.drops, epsilon=spec.epsilon, components=spec.components,
        )  # fmt: skip
        self.project: nn.Module = nn.Linear(width, spec.width) if width != spec.width else nn.Identity()
        fused = 0 if spec.knowledge is None else spec.knowledge.fused(spec.layers)
        self.plain = spec.layers - fused  # layers that do not read entities
        self.blocks = nn.ModuleList(self._block(spec, number) for number in range(spec.layers))
        self.knowledge = None if spec.knowledge is None else spec.knowledge.table()
        self._share(spec.sharing)
        # position tables that are added before each layer but the first; for the first, the embeddings hold the positions
        self.places = nn.ModuleList(spec.positions.tables(spec.layers, spec.length, spec.width))
        self.shared_attention = spec.attention.shared(spec.width, spec.heads, spec.drops)
        self.final_norm = Norm(spec.width, eps=spec.epsilon) if spec.norm == "pre" else nn.Identity()
        self.decoder = None if spec.decoder is None else spec.decoder.build(spec, self.blocks, self.embed)
        self.compiled = False  # whether the parts are compiled: FlexAttention is used only then
        for module in self.modules() if not spec.biases else ():
            drop_bias(module)
        self._draw_weights()

    def _block(self, spec: Transformer, number: int) -> nn.Module:
        if number < self.plain or spec.knowledge is None:
            return Block(spec, first=number == 0)
        return spec.knowledge.block(spec, first=number == 0)

    def _share(self, sharing: Sharing) -> None:
        first, *others = list[Any](self.blocks)
        norm = first.attention_norm if self.spec.first_norm or not others else others[0].attention_norm
        for block in others:
            if sharing in ("attention", "all"):
                block.attention, block.attention_norm = first.attention, norm
            if sharing in ("feedforward", "all"):
                block.mlp, block.mlp_norm = first.mlp, first.mlp_norm

    def _draw_weights(self) -> None:
        """Draw random weights. The order of the draws is fixed, so the same seed gives the same weights."""
        spec = self.spec
        self.apply(self._draw)
        if spec.initial_projection == "glorot" and isinstance(self.project, nn.Linear):
            glorot(self.project)
        if spec.scaled_init:
            narrow = InitWeights(spec.initial, spec.deviation / math.sqrt(2 * spec.layers))
            for block in list[Any](self.blocks):
                for linear in (block.attention.out, block.mlp.down):
                    narrow.layer(linear)
        if spec.positions.neighbours:
            first: Any = self.blocks[0]
            start_at_neighbours(spec, self.embed, first.attention, self.pattern, self.project)

    def _draw(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            self.spec.fresh.layer(module)
        if isinstance(module, nn.Embedding):
            self.spec.fresh.draw(module.weight)

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one. Equal layers are compiled only once."""
        return [self.embed, *self.blocks, *self._optional(self.shared_attention), *self._optional(self.decoder)]

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, from the first layer up. All other modules count as embeddings."""
        found = [[block] for block in self.blocks]
        found[-1] += [self.final_norm, *self._optional(self.decoder)]
        return found

    @staticmethod
    def _optional(module: nn.Module | None) -> list[nn.Module]:
        return [] if module is None else [module]

    def first_state(self, rows: int) -> None:
        """The memory before the first batch of training: None, because a token sees only its own row."""

    @property
    def can_cache(self) -> bool:
        """Whether it can read two texts part by part."""
        return self.spec.attention.cached and self.spec.decoder is None

    def cache(self, rows: int, length: int) -> Cache:
        """An empty cache: with it, this number of rows is read part by part, from left to right, up to this length."""
        spec, weight = self.spec, self.embed.token.weight
        require_cached("attention", spec.attention, spec.attention.cached)
        require_cached("decoder", spec.decoder, spec.decoder is None)
        require_cached("knowledge", spec.knowledge, spec.knowledge is None)
        like = weight.new_empty(0, dtype=compute_dtype(weight))
        return Cache.empty(spec.layers, rows, spec.heads, length, spec.width // spec.heads, like)

    def forward(self, batch: Batch, state: Cache | None = None) -> tuple[Hidden, Cache | None]:
        """The vectors, and the new state. With a cache, the batch continues the cached tokens; its positions start at 0."""
        dtype = compute_dtype(self.embed.token.weight)
        batch, mask, state = self._mask(batch, state, dtype)
        masks = layer_masks(self.spec, batch, mask, batch.position if state is None else state.position)
        x = self.project(self.embed(batch).to(dtype))  # vectors between layers have the precision of matrix products
        layers, entities = [x], None if self.knowledge is None else self.knowledge(batch, dtype)
        for number, block in enumerate(self.blocks):
            if number and self.places:
                x = x + self.places[number - 1](batch.position).to(dtype)
            if number >= self.plain:
                x, vectors = cast(Any, block).fuse(x, masks[number], entities)
                entities = None if entities is None else entities._replace(vectors=vectors)
            else:
                x = block(x, masks[number]) if state is None else block(x, masks[number], state.layer(number))
            layers.append(x)
        layers[-1] = self.final_norm(x)
        decoded = None if self.decoder is None else self.decoder(tuple(layers), batch, masks[-1])
        found = Hidden(tuple(layers), decoded=decoded)
        if self.knowledge is not None:
            last = None if entities is None else entities.vectors
            found = found.replace(entities=last, table=self.knowledge.vectors)
        return found, state

    def _mask(self, batch: Batch, state: Cache | None, dtype: torch.dtype) -> tuple[Batch, AttentionMask, Cache | None]:
        """The mask without a window. With a cache: also the batch with continued positions, and the cache after the batch."""
        if state is None:
            dense = self.spec.attention.dense or (self.training and self.spec.attention_dropout > 0)
            mask = attention_mask(batch, self.pattern, dtype, compiled=self.compiled, dense=dense)
        else:
            batch, mask, state = state.take(batch)
        if self.shared_attention is not None:
            mask = dataclasses.replace(mask, prepared=self.shared_attention(batch, dtype))
        return batch, mask, state


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The precision in which matrix products are computed."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
