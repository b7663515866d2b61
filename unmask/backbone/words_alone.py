"""WordsAlone: the embeddings of the tokens, and nothing above them. No token sees another: texts are bags of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unmask.backbone.lstm import WordEmbed
from unmask.backbone.transformer import check_dropout, compute_dtype
from unmask.backbone.without_positions import WithoutPositions
from unmask.batch import Batch, Hidden
from unmask.see import Pattern


@dataclass(frozen=True)
class WordsAlone(WithoutPositions):
    """Token embeddings alone, such as word vectors: the baseline of every network that reads words in context."""

    width: int = 300  # of the embeddings
    length: int = 512  # the longest text that is read at once; there are no positions, and it could read any length
    dropout: float = 0.0  # on the embeddings, of whole words

    def __post_init__(self) -> None:
        self.check_sizes("width", "length")
        check_dropout(self, "dropout", automatic=())

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"one table", "no summary", "equal layers"})

    @property
    def layers(self) -> int:
        """The number of layers above the embeddings: none."""
        return 0

    @property
    def embedding(self) -> int | None:
        """The width of the embeddings: None, `width`."""
        return None

    def build(self, vocabulary: int, pattern: Pattern, embed: nn.Module | None = None) -> WordsAloneModule:
        """The network with random initial weights. `embed`: the embeddings of another network, to be shared."""
        return WordsAloneModule(self, vocabulary, embed)

    def flops(self, length: int, pattern: Pattern, asked: float = 0.0) -> float:
        """Floating-point operations per token of one forward pass: none, a lookup."""
        return 0.0


class WordsAloneModule(nn.Module):
    """The network itself: a table."""

    endless = True
    reach = None
    can_cache = False

    def __init__(self, spec: WordsAlone, vocabulary: int, embed: nn.Module | None) -> None:
        super().__init__()
        self.spec = spec
        self.embed: Any = embed or WordEmbed(vocabulary, spec.width, spec.dropout)
        self.compiled = False

    @property
    def parts(self) -> list[nn.Module]:
        """The modules that are compiled one by one: none."""
        return []

    @property
    def layer_modules(self) -> list[list[nn.Module]]:
        """The modules of each layer: there are no layers."""
        return []

    def first_state(self, rows: int) -> None:
        """The memory before the first batch of training: None."""

    def forward(self, batch: Batch, state: Any = None) -> tuple[Hidden, Any]:
        vectors: torch.Tensor = self.embed(batch.ids).to(compute_dtype(self.embed.token.weight))
        return Hidden((vectors,)), state
