"""Heads that start at the neighbours: initial weights with which the first layer reads the tokens around each token.

With random initial weights and learned positions, every token first reads the mean of its row. Finding its neighbours takes a
masked model millions of tokens: it must learn, for each position, the vector of the position before it. Here the network starts
with the answer, and learns on from there. Only values change, not the architecture.

The first numbers of an embedding hold the position, as waves; tokens start with zeros there. A head that starts at offset 1 has
keys that copy the waves, and queries that copy them turned by one position. So the score is largest for the next token.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from unmask.axes import Pattern

WAVES = 0.25  # the largest share of an embedding that holds waves
SLOWEST = 0.15  # radians by which the slowest wave turns from one position to the next; the fastest turns by 1
STRENGTH = 1.5  # root mean square of the waves, in deviations of the token embeddings
SCORE = 7.0  # of the token that a head starts at; then about half of the attention goes to it, the rest next to it


@torch.no_grad()
def start_at_neighbours(
    spec: Any, embed: Any, attention: Any, pattern: Pattern, project: nn.Module | None = None
) -> None:
    """Change the initial weights of embeddings and of the attention of a first layer: half of its heads, and at least two, read
    neighbours. `project`: from narrow embeddings to the layers."""
    head = spec.width // spec.heads
    planes = planes_of(embed.token.weight.shape[1], head)
    speeds = torch.logspace(0, math.log10(SLOWEST), planes)
    waves = _waves(torch.arange(spec.length)[:, None] * speeds) * math.sqrt(2) * STRENGTH * spec.deviation
    embed.token.weight[:, : 2 * planes] = 0.0
    embed.position.weight.zero_()
    embed.position.weight[:, : 2 * planes] = waves
    size = _size_of_waves(embed.token.weight.shape[1], planes) * _through(spec, project, planes)
    scale = math.sqrt(SCORE * math.sqrt(head) / (2 * planes)) / size
    for number, offset in enumerate(offsets(spec.heads, pattern)):
        query, key = (attention.qkv.weight[i * spec.width + number * head :][:head] for i in (0, 1))
        for weight, turn in ((query, offset * speeds), (key, 0 * speeds)):
            weight.zero_()
            weight[: 2 * planes, : 2 * planes] = scale * _turned(turn)


def planes_of(embedding: int, head: int) -> int:
    """The number of waves of embeddings and heads of these widths."""
    return min(max(1, int(WAVES * embedding) // 2), embedding // 2, head // 2)


def offsets(heads: int, pattern: Pattern) -> list[int]:
    """Where the heads start, one after the other: -1, 1, -2, 2 ...; -1, -2 ... if a token sees only tokens before it."""
    count = min(heads, max(2, heads // 2))
    if pattern == "left":
        return [-1 - i for i in range(count)]
    return [(i // 2 + 1) * (1 if i % 2 else -1) for i in range(count)]


def _waves(angle: Tensor) -> Tensor:
    """Sine and cosine of each angle, one after the other in the last dimension."""
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)


def _turned(angle: Tensor) -> Tensor:
    """The matrix that turns each wave by an angle."""
    return torch.block_diag(
        *(torch.stack((torch.stack((a.cos(), a.sin())), torch.stack((-a.sin(), a.cos())))) for a in angle)
    )


def _size_of_waves(width: int, planes: int) -> float:
    """Root mean square of the waves after the norm of the embeddings."""
    share = 2 * planes / width
    return STRENGTH / math.sqrt(share * STRENGTH**2 + 1 - share)


def _through(spec: Any, project: nn.Module | None, planes: int) -> float:
    """Let the projection of narrow embeddings copy the waves, in proportion to the rest; returns the factor."""
    if not isinstance(project, nn.Linear):
        return 1.0
    weight = project.weight
    deviation = spec.deviation if spec.initial_projection == "layers" else math.sqrt(2 / sum(weight.shape))  # Glorot's
    factor = deviation * math.sqrt(weight.shape[1])
    weight[: 2 * planes] = 0.0
    weight[:, : 2 * planes] = 0.0
    weight[: 2 * planes, : 2 * planes] = factor * torch.eye(2 * planes)
    return factor
