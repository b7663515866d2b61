"""Transformer-XL: a Transformer with a memory of the rows before and with relative positions; with two streams, XLNet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from unmask.axes import Need, Part
from unmask.backbone.adaptive_embedding import AdaptiveEmbedding
from unmask.backbone.auto_dropout import Dropout, dropout_for
from unmask.backbone.block import Activation, Feedforward
from unmask.backbone.components import token_table
from unmask.backbone.embed import Norm
from unmask.backbone.protocols import ComponentsPart
from unmask.backbone.relative import LayerMemory, Relations, RelativeAttention, relate, waves
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.init_weights import InitWeights
from unmask.see import Pattern


@dataclass(frozen=True)
class TransformerXL(Part):
    """A stack of layers with relative positions and a memory (Transformer-XL, XLNet)."""

    layers: int = 12  # the number of layers
    width: int = 512  # of every vector between layers
    heads: int = 8  # of attention
    head: int = 64  # width of one head
    feedforward: int = 2048  # width inside the feed-forward layer
    memory: int = 512  # the number of tokens of earlier rows that stay visible; 0: no memory
    length: int = 512  # the longest text that is read at once without a memory
    clamp: int | None = None  # larger distances become this one; none: there is no largest distance
    streams: int = 1  # 2: there is a query stream at the targets, which does not see the target tokens (XLNet)
    cutoffs: tuple[int, ...] = ()  # at each of these token ids begins a cluster with narrower vectors; (): one table
    divide: int = 4  # the vectors of each cluster are this many times narrower than those of the cluster before
    segments: int = (
        0  # above 0: attention distinguishes tokens of the same segment and of another (XLNet); 0: it does not
    )
    components: ComponentsPart | None = None  # of the characters of a token, added to its vector; none: there are none
    shared_biases: bool = False  # all layers share the two global biases
    scaled_embeddings: bool = True  # embeddings are multiplied by the square root of the width (Transformer-XL)
    activation: Activation = "relu"  # of the feed-forward layer
    # on embeddings, distances, inside the feed-forward layer and after every sublayer; auto: by how often the text is read
    dropout: Dropout = 0.1
    attention_dropout: float = 0.0  # on attention weights; above 0, training uses slower plain operations
    epsilon: float = 1e-5  # of the norms
    deviation: float = 0.02  # of the initial weights, drawn from a normal distribution
    projection_deviation: float = 0.01  # of the initial projections of narrow embeddings to the full width

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "head", "feedforward", "length"):
            value = getattr(self, name)
            require(value >= 1, "backbone.{name} must be 1 or more, got {value}", name=name, value=value)
        require(
            self.width % 2 == 0,
            "backbone.width must be even, got {width}: half of a distance vector is sines, half is cosines",
            width=self.width,
        )
        require(self.memory >= 0, "backbone.memory must be 0 or more tokens, got {memory}", memory=self.memory)
        require(self.streams in (1, 2), "backbone.streams must be 1 or 2, got {streams}", streams=self.streams)
        check_dropout(self, "dropout", "attention_dropout")
        require(self.deviation > 0, "backbone.deviation must be over 0, got {deviation}", deviation=self.deviation)
        require(self.divide >= 1, "backbone.divide must be 1 or more, got {divide}", divide=self.divide)
        check_clamp(self.clamp, self.memory)

    @property
    def needs(self) -> tuple[Need, ...]:
        rows = Need("continuing rows|examples", because="its memory keeps tokens of the row before", unless="memory=0")
        order = Need(
            "order|examples", because="its second stream predicts the end of a random order", unless="streams=1"
        )
        return (rows,) * (self.memory > 0) + (order,) * (self.streams == 2)

    @property
    def gives(self) -> frozenset[str]:
        found = {"equal layers", "clusters" if self.cutoffs else "one table"}
        found |= {"memory"} if self.memory else set()
        return frozenset(found | ({"second stream"} if self.streams == 2 else set()))

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on: no, it uses distances, and can read longer texts."""
        return False

    @property
    def embedding(self) -> int | None:
        """The width of the embeddings: None, the width of the layers."""
        return None

    @property
    def fresh(self) -> InitWeights:
        """How layers and heads are initialised."""
        return InitWeights("normal", self.deviation)

    @property
    def drops(self) -> float:
        """The dropout that the network is built with."""
        return dropout_for(self.dropout)

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> TransformerXLModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return TransformerXLModule(self, vocabulary, pattern, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass over rows of this length and a full memory.

        `asked`: the share of tokens at which a second stream predicts, if there is one."""
        inner, keys = self.heads * self.head, length + self.memory
        distances = keys if pattern == "left" else keys + length
        look = 4 * self.width * inner + 4 * self.width * self.feedforward + 4 * keys * inner + 2 * distances * inner
        share = asked if self.streams == 2 else 0.0
        return self.layers * ((1 + share) * look + 4 * self.width * inner * keys / length)

    def outputs(self, vocabulary: int) -> float:
        """The number of full-width rows of the token table; a row of a narrower cluster counts as a fraction."""
        edges = (0, *self.cutoffs, vocabulary)
        return sum((end - begin) / self.divide**i for i, (begin, end) in enumerate(pairwise(edges)))


def check_clamp(clamp: int | None, memory: int) -> None:
    """Refuse a memory that reaches farther than the largest distance."""
    require(
        clamp is None or clamp >= memory,
        (
            "a memory of {memory} tokens is longer than the largest distance, backbone.clamp={clamp}: lower the "
            "memory, or raise backbone.clamp"
        ),
        memory=memory,
        clamp=clamp,
    )


class RelativeBlock(nn.Module):
    """One layer, for the content stream and, if there is one, the query stream.

    Adapters replace `after_attention` and `after_mlp`."""

    def __init__(self, spec: TransformerXL) -> None:
        super().__init__()
        self.attention = RelativeAttention(
            spec.width, spec.heads, spec.head, segments=spec.segments > 0, dropout=spec.attention_dropout
        )
        self.attention_norm = Norm(spec.width, eps=spec.epsilon)
        self.mlp = Feedforward(spec.width, spec.feedforward, spec.activation, spec.drops)
        self.mlp_norm = Norm(spec.width, eps=spec.epsilon)
        self.after_attention: nn.Module = nn.Identity()
        self.after_mlp: nn.Module = nn.Identity()
        self.dropout = nn.Dropout(spec.drops)

    def forward(
        self, x: Tensor, asking: Tensor | None, memory: Tensor | None, relations: Relations
    ) -> tuple[Tensor, Tensor | None]:
        found, answer = self.attention(x, asking, memory, relations)
        return self._rest(x, found), None if asking is None or answer is None else self._rest(asking, answer)

    def _rest(self, x: Tensor, found: Tensor) -> Tensor:
        x = self.attention_norm(x + self.after_attention(self.dropout(found)))
        done: Tensor = self.mlp_norm(x + self.after_mlp(self.dropout(self.mlp(x))))
        return done


class TokenEmbed(nn.Module):
    """Token embeddings without positions: attention knows the distances between tokens."""

    def __init__(self, vocabulary: int, spec: TransformerXL) -> None:
        super().__init__()
        self.token: nn.Module = (
            AdaptiveEmbedding(vocabulary, spec.width, spec.cutoffs, spec.divide, deviation=spec.projection_deviation)
            if spec.cutoffs
            else token_table(vocabulary, spec.width, spec.components)
        )
        # parameters with one row per token of the vocabulary; clusters have no common rows
        self.token_rows: tuple[str, ...] = () if spec.cutoffs else ("token.weight",)
        self.scale = math.sqrt(spec.width) if spec.scaled_embeddings else 1.0
        self.segment = None
        self.dropout = nn.Dropout(spec.drops)

    def forward(self, batch: Batch) -> Tensor:
        embedded: Tensor = self.dropout(self.token(batch.ids) * self.scale)
        return embedded


class TransformerXLModule(nn.Module):
    """The network itself. Its memory has no gradient."""

    endless = True  # a full memory drops its oldest tokens
    reach: int | None  # the largest distance; None: there is no largest distance

    def __init__(self, spec: TransformerXL, vocabulary: int, pattern: Pattern, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec, self.pattern, self.reach = spec, pattern, spec.clamp
        self.embed: Any = embed or TokenEmbed(vocabulary, spec)
        # the first vectors of the query stream
        self.mask = nn.Parameter(torch.zeros(spec.width)) if spec.streams == 2 else None
        self.blocks = nn.ModuleList(RelativeBlock(spec) for _ in range(spec.layers))
        self.dropout = nn.Dropout(spec.drops)
        self.compiled = False
        if spec.shared_biases:
            first, *others = list[Any](self.blocks)
            for block in others:
                block.attention.content_bias = first.attention.content_bias
                block.attention.place_bias = first.attention.place_bias
        self.apply(self._draw)

    def _draw(self, module: nn.Module) -> None:
        """Draw random weights. Norms keep their ones and zeros; the biases of linear layers and components are zeros."""
        named = {
            name: p
            for name, p in module.named_parameters(recurse=False)
            if not (name in ("bias", "component") or isinstance(module, Norm))
        }
        for parameter in named.values():
            self.spec.fresh.draw(parameter)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, AdaptiveEmbedding):
            for projection in module.projections:
                module.draw_projection(projection)

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one. Equal layers are compiled only once."""
        return [self.embed, *self.blocks]

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer, from the first layer up. All other modules count as embeddings."""
        return [[block] for block in self.blocks]

    @property
    def can_cache(self) -> bool:
        """Whether it can read two texts part by part. The memory does not know which text its tokens belong to."""
        return self.spec.segments == 0

    def cache(self, rows: int, length: int | None = None) -> LayerMemory:
        """An empty memory. `length`: its number of tokens; None: the same number as in training."""
        weight, size = next(self.embed.parameters()), self.spec.memory if length is None else length
        check_clamp(self.spec.clamp, size)
        shape = (rows, len(self.blocks), size, self.spec.width)
        layers = torch.zeros(shape, device=weight.device, dtype=compute_dtype(weight))
        return LayerMemory(layers, torch.zeros(rows, size, dtype=torch.bool, device=weight.device))

    def first_state(self, rows: int) -> LayerMemory | None:
        """The memory before the first batch of training."""
        return self.cache(rows) if self.spec.memory else None

    def forward(self, batch: Batch, state: LayerMemory | None = None) -> tuple[Hidden, LayerMemory | None]:
        """The vectors, and the memory after the batch. With a memory, the batch continues it. Without, None is returned."""
        dtype = compute_dtype(next(self.embed.parameters()))
        begins = batch.per_row.get("begins")
        if state is not None and begins is not None:  # some rows do not continue the rows before: they have no memory
            state = state.replace(real=state.real & ~begins[:, None])
        relations = self._relations(batch, state, dtype)
        x = self.embed(batch).to(dtype)
        asking = self._first_query(relations, dtype)
        layers = [x]
        for number, block in enumerate(self.blocks):
            x, asking = block(x, asking, None if state is None else state.layers[:, number], relations)
            layers.append(x)
        memory = self._remember(batch, layers[:-1], state) if state is not None and state.real.shape[1] else None
        layers[-1] = self.dropout(x)
        return Hidden(tuple(layers), None if asking is None else self.dropout(asking).flatten(0, 1)), memory

    def _first_query(self, relations: Relations, dtype: torch.dtype) -> Tensor | None:
        """B Q D, the first vectors of the query stream; None if there is no such stream."""
        if self.mask is None or relations.query is None or relations.query.column is None:
            return None
        places = (*relations.query.column.shape, self.spec.width)
        started: Tensor = self.dropout(self.mask.to(dtype).expand(places))
        return started

    def _relations(self, batch: Batch, state: LayerMemory | None, dtype: torch.dtype) -> Relations:
        two = self.mask is not None and "tokens" in batch.targets
        rows = batch.shape[1]
        keys = rows + (0 if state is None else state.real.shape[1])
        nearest = 0 if self.pattern == "left" else -rows  # from left to right, no token sees a later one
        table = waves(keys - 1, nearest, self.spec.width, self.spec.clamp, batch.ids.device)[None]
        if "backward" in batch.per_row:
            half = self.spec.width // 2  # for the negative distance, sines change their sign and cosines do not
            table = torch.cat((table, torch.cat((-table[..., :half], table[..., half:]), 2)))
        return relate(batch, state, self.dropout(table).to(dtype), segments=self.spec.segments > 0, query=two)

    def _remember(self, batch: Batch, layers: list[Tensor], before: LayerMemory) -> LayerMemory:
        """The memory for the next batch: the last tokens of the old memory and this batch, as many as fit."""
        size, kept = before.real.shape[1], slice(0, batch.reuse)
        read = torch.stack([layer[:, kept] for layer in layers], 1).detach()
        return LayerMemory(
            torch.cat((before.layers.to(read.dtype), read), 2)[:, :, -size:],
            torch.cat((before.real, batch.real[:, kept]), 1)[:, -size:],
        )
