"""Embeddings from spelling: convolutions over the characters of a word, highway layers and a projection (ELMo)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.batch import Batch
from unmask.init_weights import InitWeights

# The symbols: 256 bytes, two for special tokens, the begin and the end of a word, and padding.
SPECIAL, BEGIN, END, PADDING = 256, 258, 259, 260
SYMBOLS = 261
NO_BYTE = 255  # fills the column `spelling` after the last byte of a word
CARRY = -2.0  # initial bias of the gates of highway layers: most of the input passes


def _drawn(linear: nn.Linear) -> nn.Linear:
    """A layer with initial weights whose outputs are as large as its inputs."""
    return InitWeights("normal", linear.in_features**-0.5).layer(linear)


class Highway(nn.Module):
    """gate * relu(linear(x)) + (1 - gate) * x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.new, self.gate = (_drawn(nn.Linear(width, width)) for _ in range(2))
        nn.init.constant_(self.gate.bias, CARRY)

    def forward(self, x: Tensor) -> Tensor:
        return torch.lerp(x, F.relu(self.new(x)), torch.sigmoid(self.gate(x)))


class _NoTable:
    """There is no table of tokens. Heads read only the shape that it would have."""

    def __init__(self, vocabulary: int, width: int) -> None:
        self.weight = torch.empty(vocabulary, width, device="meta")


class SpellingEmbed(nn.Module):
    """A vector for each word, from the column `spelling`."""

    token_rows: tuple[str, ...] = ()  # no parameter has one row per token of the vocabulary

    def __init__(self, vocabulary: int, width: int, characters: int, filters: Sequence[int], highways: int) -> None:
        super().__init__()
        self.token = _NoTable(vocabulary, width)
        self.segment = None
        self.character, self.convolutions = character_layers(characters, filters)
        self.highways = nn.ModuleList(Highway(sum(filters)) for _ in range(highways))
        self.project = _drawn(nn.Linear(sum(filters), width))

    def forward(self, batch: Batch) -> Tensor:
        found = convolved(batch, self.character, self.convolutions)
        for highway in self.highways:
            found = highway(found)
        embedded: Tensor = self.project(found)
        return embedded.view(*batch.shape, -1)


def character_layers(characters: int, filters: Sequence[int]) -> tuple[nn.Embedding, nn.ModuleList]:
    """The vectors of characters, and convolutions over 1, 2, 3 ... of them."""
    table = nn.Embedding(SYMBOLS, characters)
    nn.init.uniform_(table.weight, -1.0, 1.0)
    convolutions = nn.ModuleList(nn.Conv1d(characters, count, size) for size, count in enumerate(filters, 1) if count)
    for convolution in convolutions:
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    return table, convolutions


def convolved(batch: Batch, table: nn.Embedding, convolutions: nn.ModuleList) -> Tensor:
    """B*T D, for each word the largest output of every convolution over its characters."""
    symbols = symbols_of(batch.columns["spelling"], batch.ids)  # B T C
    characters = table(symbols.flatten(0, 1)).transpose(1, 2)  # B*T D C
    return torch.cat([F.relu(convolution(characters).amax(2)) for convolution in convolutions], 1)


def symbols_of(spelling: Tensor, ids: Tensor) -> Tensor:
    """B T C+2, the symbols of each token: the begin of a word, its bytes, its end, padding.

    A token without bytes is a special token: its id chooses one of two symbols, so that the begin and the end of a text
    differ."""
    size = (spelling != NO_BYTE).sum(-1, keepdim=True)
    first = torch.where(size == 0, SPECIAL + ids[..., None] % 2, spelling[..., :1])
    inside = torch.cat((first, spelling[..., 1:]), -1)
    inside = torch.where(inside == NO_BYTE, PADDING, inside)
    edge = torch.full_like(first, PADDING)
    found = torch.cat((torch.full_like(first, BEGIN), inside, edge), -1)
    return found.scatter(-1, size.clamp(min=1) + 1, END)
