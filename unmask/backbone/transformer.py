"""The Transformer: layers of attention and feed-forward, with the norm before each or after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Part
from unmask.backbone.attention import Attention, AttentionMask, attention_mask
from unmask.backbone.embed import Embed, Norm, Positions
from unmask.backbone.key_value_cache import Cache
from unmask.batch import Batch, Hidden
from unmask.errors import require
from unmask.init_weights import InitWeights, Law, glorot
from unmask.see import Pattern

Activation = Literal["gelu", "gelu_tanh", "relu"]
Sharing = Literal["none", "attention", "feedforward", "all"]


@dataclass(frozen=True)
class Transformer(Part):
    """A stack of Transformer layers (BERT, GPT); with shared layers and narrow embeddings, ALBERT."""

    layers: int = 12  # how many
    width: int = 768  # of every vector between layers
    heads: int = 12  # of attention
    feedforward: int = 3072  # width inside the feed-forward layer
    embedding: int | None = None  # width of the embeddings, brought to that of the layers; none: the same
    sharing: Sharing = "none"  # which weights all layers have in common
    length: int = 512  # longest example
    norm: Literal["post", "pre"] = "post"  # after the sum (BERT) or before the layer (GPT-2)
    embedding_norm: bool | None = None  # a norm on the embeddings too; none: where the norm stands after the sum (BERT)
    positions: Positions = "learned"  # or sinusoidal
    every: bool = (
        False  # positions are added before every layer, from a learned table of its own for each after the first
    )
    segments: int = 0  # how many kinds of text the embeddings tell apart; 0 for none
    activation: Activation = "gelu"  # of the feed-forward layer
    dropout: float = 0.1  # on the embeddings and after every sublayer
    attention_dropout: float = 0.0  # on attention weights; over 0, training takes the slower dense kernel
    activation_dropout: float = 0.0  # inside the feed-forward layer, after its activation
    epsilon: float = 1e-12  # of the norms
    initial: Law = "truncated"  # initial weights: from a normal distribution cut at two deviations, or a whole one
    deviation: float = 0.02  # of the initial weights
    # initial weights that bring narrow embeddings to the full width: as in the layers, or Glorot's (ELECTRA)
    initial_projection: Literal["layers", "glorot"] = "layers"
    scaled_init: bool = False  # initial output weights divided by the root of the number of sublayers (GPT-2)

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "feedforward", "length"):
            value = getattr(self, name)
            require(value >= 1, f"backbone.{name} must be 1 or more, got {value}")
        require(
            self.width % self.heads == 0,
            f"backbone.width must be a multiple of backbone.heads, got {self.width} and {self.heads}",
        )
        require(
            self.embedding is None or self.embedding >= 1,
            f"backbone.embedding must be none or 1 or more, got {self.embedding}",
        )
        require(
            self.segments == 0 or self.segments >= 2,
            f"backbone.segments must be 0 for none, or 2 or more, got {self.segments}",
        )
        check_dropout(self, "dropout", "attention_dropout", "activation_dropout")
        require(self.deviation > 0, f"backbone.deviation must be over 0, got {self.deviation}")

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "any width"})

    @property
    def memory(self) -> int:
        """Tokens of earlier rows that stay visible: none."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether it knows only the positions that it was trained on."""
        return self.positions == "learned" or self.every

    @property
    def norms_embeddings(self) -> bool:
        return self.norm == "post" if self.embedding_norm is None else self.embedding_norm

    @property
    def fresh(self) -> InitWeights:
        """How layers and heads start."""
        return InitWeights(self.initial, self.deviation)

    def build(self, vocabulary: int, pattern: Pattern, embed: Embed | None = None) -> TransformerModule:
        """The network with fresh weights; `embed`: the embeddings of another, shared with it."""
        return TransformerModule(self, vocabulary, pattern, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass over rows of this length; there is no second stream."""
        dense = 2 * (4 * self.width**2 + 2 * self.width * self.feedforward)
        project = 2 * self.embedding * self.width if self.embedding not in (None, self.width) else 0  # type: ignore[operator]
        return self.layers * (dense + 4 * length * self.width) + project

    def outputs(self, vocabulary: int) -> float:
        """How many tokens of full width the table of so many amounts to: all are."""
        return vocabulary


def check_dropout(spec: Any, *names: str) -> None:
    """Refuse a share of dropped numbers that leaves none."""
    for name in names:
        value = getattr(spec, name)
        require(0 <= value < 1, f"backbone.{name} must be in [0, 1), got {value}")


class Block(nn.Module):
    """One layer. `after_attention` and `after_mlp` are seams: adapters go there."""

    def __init__(self, spec: Transformer) -> None:
        super().__init__()
        self.pre = spec.norm == "pre"
        self.attention = Attention(spec.width, spec.heads, dropout=spec.attention_dropout)
        self.attention_norm = Norm(spec.width, eps=spec.epsilon)
        self.mlp = Feedforward(spec.width, spec.feedforward, spec.activation, spec.activation_dropout)
        self.mlp_norm = Norm(spec.width, eps=spec.epsilon)
        self.after_attention: nn.Module = nn.Identity()
        self.after_mlp: nn.Module = nn.Identity()
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, x: Tensor, view: AttentionMask, kept: tuple[Tensor, Tensor] | None = None) -> Tensor:
        if self.pre:
            x = x + self.after_attention(self.dropout(self.attention(self.attention_norm(x), view, kept)))
            return x + self.after_mlp(self.dropout(self.mlp(self.mlp_norm(x))))
        x = self.attention_norm(x + self.after_attention(self.dropout(self.attention(x, view, kept))))
        return self.mlp_norm(x + self.after_mlp(self.dropout(self.mlp(x))))


class Feedforward(nn.Module):
    def __init__(self, width: int, inner: int, activation: Activation, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(activate(self.up(x), self.activation)))  # type: ignore[no-any-return]


class TransformerModule(nn.Module):
    """The network itself."""

    endless = False  # a state has places for so many tokens and no more
    reach = None  # all places are told apart

    def __init__(self, spec: Transformer, vocabulary: int, pattern: Pattern, embed: Embed | None) -> None:
        super().__init__()
        self.spec, self.pattern = spec, pattern
        width = spec.embedding or spec.width
        self.embed = embed or Embed(
            vocabulary, width, length=spec.length, positions=spec.positions, segments=spec.segments,
            norm=spec.norms_embeddings, dropout=spec.dropout, epsilon=spec.epsilon,
        )  # fmt: skip
        self.project: nn.Module = nn.Linear(width, spec.width) if width != spec.width else nn.Identity()
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.layers))
        self._share(spec.sharing)
        # the embeddings hold the positions of the first layer
        places = range(1, spec.layers if spec.every else 1)
        self.places = nn.ModuleList(nn.Embedding(spec.length, spec.width) for _ in places)
        self.final_norm = Norm(spec.width, eps=spec.epsilon) if spec.norm == "pre" else nn.Identity()
        self.compiled = False  # whether the parts are: then kernels that must be may be chosen
        self.apply(self._start)
        if spec.initial_projection == "glorot" and isinstance(self.project, nn.Linear):
            glorot(self.project)
        if spec.scaled_init:
            narrow = InitWeights(spec.initial, spec.deviation / math.sqrt(2 * spec.layers))
            for block in self.blocks:
                for linear in (block.attention.out, block.mlp.down):  # type: ignore[union-attr]
                    narrow.layer(linear)  # type: ignore[arg-type]

    def _share(self, sharing: Sharing) -> None:
        first = self.blocks[0]
        for block in self.blocks[1:]:
            if sharing in ("attention", "all"):
                block.attention, block.attention_norm = first.attention, first.attention_norm
            if sharing in ("feedforward", "all"):
                block.mlp, block.mlp_norm = first.mlp, first.mlp_norm

    def _start(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            self.spec.fresh.layer(module)
        if isinstance(module, nn.Embedding):
            self.spec.fresh.draw(module.weight)

    @property
    def parts(self) -> list[nn.Module]:
        """What is compiled, each for itself: layers that are alike are compiled once."""
        return [self.embed, *self.blocks]

    def first_state(self, rows: int) -> None:
        """What the first batch of a training begins with: nothing, a row is all it sees."""

    def cache(self, rows: int, length: int) -> Cache:
        """An empty state, for reading so many tokens of every row bit by bit."""
        require(self.pattern == "left", "only a network that reads from left to right can read a text bit by bit")
        like = self.embed.token.weight.new_empty(0, dtype=compute_dtype(self.embed.token.weight))
        heads = self.spec.heads
        return Cache.empty(self.spec.layers, rows, heads, length, self.spec.width // heads, like)

    def forward(self, batch: Batch, state: Cache | None = None) -> tuple[Hidden, Cache | None]:
        """With a state, the batch goes on from the tokens that it holds; its positions count from the first new one."""
        dtype = compute_dtype(self.embed.token.weight)
        if state is None:
            dropping = self.training and self.spec.attention_dropout > 0
            seen = attention_mask(batch, self.pattern, dtype, compiled=self.compiled, dense=dropping)
        else:
            batch, seen, state = state.take(batch)
        x = self.project(self.embed(batch).to(dtype))  # between layers, too, vectors keep the precision of the products
        layers = [x]
        for number, block in enumerate(self.blocks):
            if number and self.spec.every:
                x = x + self.places[number - 1](batch.position).to(dtype)
            x = block(x, seen) if state is None else block(x, seen, (state.keys[number], state.values[number]))
            layers.append(x)
        layers[-1] = self.final_norm(x)
        return Hidden(tuple(layers)), state


def activate(x: Tensor, activation: Activation) -> Tensor:
    if activation == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The precision that products are computed in."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
