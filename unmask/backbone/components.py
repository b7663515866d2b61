"""Components: a token is embedded as its own vector plus the vectors of the components of its characters.

The components of a token follow from its id, so they are a fixed table of the network, saved with its weights, and no input of a
batch. They are summed, as in GloVe with components: a mean could not tell 木, 林 and 森 apart.

A token with components that is not in the training text has no vector of its own here: its own row is only an output, which a
softmax over the vocabulary moves away from everything that is read. So it is embedded as exactly the sum of its components.
Component vectors start at zero: one that no text trains adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.axes import Need, Part
from unmask.backbone.protocols import ComponentsPart
from unmask.errors import require
from unmask.vectors.components import ComponentTable


@dataclass(frozen=True)
class Components(Part):
    """Adds the vectors of the components of Chinese characters to those of tokens; a character that is in no text gets their sum."""

    file: str | None = (
        None  # 'character TAB components' in each line; pretraining reads it; none: set it before training
    )
    count: int = 0  # the number of different components; pretraining takes it from the file
    most: int = 0  # components of one token; pretraining takes it from the file

    def __post_init__(self) -> None:
        for name in ("count", "most"):
            value = getattr(self, name)
            require(value >= 0, "backbone.components.{name} must be 0 or more, got {value}", name=name, value=value)

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("one table", "it adds to the vector of each token"),)

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"components"})

    def read(self) -> ComponentTable:
        """The table in the file."""
        require(
            self.file is not None,
            "system.backbone.components.file is none, and characters are embedded with their components: write a table with a "
            "character, a tab and its components in each line, and pass --set system.backbone.components.file=FILE",
        )
        assert self.file is not None
        require(
            Path(self.file).is_file(),
            "no table of components at {file}: set system.backbone.components.file to a file with a character, a tab and its "
            "components in each line. A run that was begun does not need it: resume it with only --resume and --out",
            file=self.file,
        )
        return ComponentTable.load(self.file)

    def table(self, vocabulary: int, width: int) -> TokenTable:
        return TokenTable(vocabulary, width, self.count, self.most)


class TokenTable(nn.Embedding):
    """Token embeddings with components. `weight` has only each token's own vector, which is also its output if they are tied."""

    token_rows: ClassVar[tuple[str, ...]] = ("numbers", "own")  # tensors with one row per token of the vocabulary
    numbers: Tensor
    own: Tensor

    def __init__(self, vocabulary: int, width: int, count: int, most: int) -> None:
        super().__init__(vocabulary, width)
        self.none = count  # the number that fills up a row of `numbers`
        self.component = nn.Parameter(torch.zeros(count + 1, width))
        self.register_buffer("numbers", torch.full((vocabulary, max(1, most)), self.none))  # V C, the components
        self.register_buffer("own", torch.ones(vocabulary, dtype=torch.bool))  # V, whether its own vector is an input

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) * self.own[ids][..., None] + self.sums(ids)

    def sums(self, ids: Tensor) -> Tensor:
        """The sum of the components of each token, zeros if it has none."""
        numbers = self.numbers[ids].flatten(0, -2)
        found = F.embedding_bag(numbers, self.component, mode="sum", padding_idx=self.none)
        return found.view(*ids.shape, -1)

    def put(self, numbers: Tensor) -> None:
        """Set the components of every token: V C, filled up with -1. Tokens with components lose their own vectors."""
        known = numbers >= 0
        self.numbers.copy_(torch.where(known, numbers, self.none))
        self.own.copy_(~known.any(1))

    def met(self, tokens: Tensor) -> None:
        """Tokens of the training text, V, have their own vectors."""
        self.own |= tokens.to(self.own.device)


def token_table(vocabulary: int, width: int, components: ComponentsPart | None) -> nn.Embedding:
    """The embeddings of tokens, with components if there are any."""
    return nn.Embedding(vocabulary, width) if components is None else components.table(vocabulary, width)
