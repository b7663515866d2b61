"""Fusion: vectors of entities flow through the upper layers next to those of tokens, and each layer fuses both.

ERNIE of Tsinghua (Zhang et al. 2019). A layer of tokens is a layer of BERT. An entity is aligned with the first token of its
name, and both share the inner vector of the feed-forward layer:

    inner = activation(W token + U entity + b)        a token without an entity: activation(W token + b)
    token = norm(token + V inner + c)                 entity = norm(entity + X inner + d)

Token and entity come from an attention of their own. The paper's formulas leave out the sums and norms, which its code has;
with them, a row without entities gets exactly the vectors of BERT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from unmask.axes import Need, Part
from unmask.backbone.attention import Attention, AttentionMask, Full
from unmask.backbone.block import Block
from unmask.backbone.embed import Norm
from unmask.batch import Batch
from unmask.errors import require
from unmask.text.links import LINKS, By

if TYPE_CHECKING:
    from unmask.backbone.transformer import Transformer


class Linked(NamedTuple):
    """The entities of a batch, each at the first token of its name."""

    vectors: Tensor  # B T D, 0 at tokens without an entity
    there: Tensor  # B T 1, 1.0 at tokens with an entity
    sees: Tensor  # B 1 T T: an entity sees the entities of its example


@dataclass(frozen=True)
class Fusion(Part):
    """Fuses the vectors of a graph's entities, which are not trained, with those of tokens (ERNIE of Tsinghua)."""

    layers: int | None = None  # how many layers fuse, the last ones; none: the upper half
    heads: int = 4  # of the attention between entities
    width: int = 100  # of the entities' vectors; pretraining takes it from the data
    entities: int = 1  # how many there are; pretraining takes it from the data
    graph: str = ""  # the fingerprint of their graph; pretraining takes it from the data
    link_by: By = "prior"  # how texts are linked to entities of one name; pretraining takes it from the data

    def __post_init__(self) -> None:
        for name in ("heads", "width", "entities"):
            value = getattr(self, name)
            require(value >= 1, "backbone.knowledge.{name} must be 1 or more, got {value}", name=name, value=value)
        require(
            self.layers is None or self.layers >= 1,
            "backbone.knowledge.layers must be none or 1 or more, got {layers}",
            layers=self.layers,
        )
        require(
            self.width % self.heads == 0,
            "the width of the entities' vectors must be a multiple of backbone.knowledge.heads, got {width} and {heads}: set "
            "other heads, or learn vectors with other --dims",
            width=self.width,
            heads=self.heads,
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need(f"column:{LINKS}", "it reads the entities of a text"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"entity vectors"})

    def fused(self, layers: int) -> int:
        """How many of this number of layers fuse."""
        return max(1, layers // 2) if self.layers is None else self.layers

    def check(self, spec: Transformer) -> None:
        require(
            self.fused(spec.layers) <= spec.layers,
            "backbone.knowledge.layers must be at most backbone.layers, got {fused} and {layers}",
            fused=self.layers,
            layers=spec.layers,
        )
        require(
            spec.norm == "post" and not spec.gated and spec.decoder is None,
            "backbone.knowledge fuses layers like BERT's, got norm={norm}, gated={gated} and decoder={decoder}: set norm=post, "
            "gated=false and decoder=none, or knowledge=none",
            norm=spec.norm,
            gated=str(spec.gated).lower(),
            decoder=type(spec.decoder).__name__,
        )

    def table(self) -> EntityTable:
        return EntityTable(self.entities, self.width)

    def block(self, spec: Transformer, *, first: bool) -> FusionBlock:
        return FusionBlock(self, spec, first=first)

    def flops(self, spec: Transformer, length: int) -> float:
        """Floating-point operations per token that fusion adds to the layers."""
        return self.fused(spec.layers) * (Full().flops(self.width, length) + 4 * self.width * spec.feedforward)


class EntityTable(nn.Module):
    """The vectors of all entities. They are saved with the weights, but never trained."""

    vectors: Tensor

    def __init__(self, entities: int, width: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.nn.functional.normalize(torch.randn(entities, width)))

    def forward(self, batch: Batch, dtype: torch.dtype) -> Linked | None:
        """The entities of a batch; None if it has no column of links."""
        links = batch.columns.get(LINKS)
        if links is None:
            return None
        linked = links >= 0
        there = linked[..., None].to(dtype)
        same = (batch.example[:, :, None] == batch.example[:, None, :]) & linked[:, :, None] & linked[:, None, :]
        itself = torch.eye(links.shape[1], dtype=torch.bool, device=links.device)  # no query may see nothing
        return Linked(self.vectors[links.clamp(min=0)].to(dtype) * there, there, (same | itself)[:, None])


class FusionBlock(Block):
    """One layer that fuses tokens and entities."""

    heavy: ClassVar[str] = "fuse"  # the method that is compiled

    def __init__(self, fusion: Fusion, spec: Transformer, *, first: bool = False) -> None:
        super().__init__(spec, first=first)
        self.entity_attention = Attention(fusion.width, fusion.heads, dropout=spec.attention_dropout)
        self.entity_attention_norm = Norm(fusion.width, eps=spec.epsilon)
        self.entity_up = nn.Linear(fusion.width, spec.feedforward, bias=False)  # the bias is that of the tokens
        self.entity_down = nn.Linear(spec.feedforward, fusion.width)
        self.entity_norm = Norm(fusion.width, eps=spec.epsilon)

    def fuse(self, x: Tensor, mask: AttentionMask, linked: Linked | None) -> tuple[Tensor, Tensor | None]:
        """B T D, and the vectors of the entities after this layer. (A compiled function cannot return a changed named tuple.)"""
        if linked is None:
            return super().forward(x, mask), None
        x = self.attention_norm(x + self.after_attention(self.dropout(self.attention(x, mask))))
        found = self.entity_attention(linked.vectors, AttentionMask(mask.longest, mask=linked.sees))
        entity = self.entity_attention_norm(linked.vectors + self.dropout(found)) * linked.there
        inner = self.mlp.inner(x, self.entity_up(entity))  # 0 is added where there is no entity
        x = self.mlp_norm(x + self.after_mlp(self.dropout(self.mlp.down(inner))))
        entity = self.entity_norm(entity + self.dropout(self.entity_down(inner))) * linked.there
        return x, entity
